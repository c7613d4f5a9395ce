double baseline_eight_schools(long repeat, const double *x, double *grad);
double baseline_logistic(long repeat, long n, long d, const double *x, double *grad, const double *data,
                         const double *label, double *residual);
double baseline_log_linear(long repeat, long n, const double *x, double *grad, const double *u, const double *v,
                           const double *both, const double *y);
