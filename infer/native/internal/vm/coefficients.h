// Made by gen/coefficients.py.
#define LN2_0 0x1.62e42ff000000p-1
#define LN2_1 -0x1.718432a1b0e26p-35
#define HALF_PI_0 0x1.921fb54400000p+0
#define HALF_PI_1 0x1.0b4611a600000p-34
#define HALF_PI_2 0x1.3198a2e000000p-69
#define HALF_PI_3 0x1.b839a252049c1p-104
// (e^r - 1 - r)/r^2, on [-0.34667, 0.34667]. Error 2.8e-19.
static const double c_exp[11] = {
    0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100d5p-7, 0x1.6c16c16c162d1p-10,
    0x1.a01a01abeb69fp-13, 0x1.a01a01a6da7e2p-16, 0x1.71de0226bd07ap-19, 0x1.27e4db5e389d2p-22, 0x1.af4e000e84be8p-26,
    0x1.1f73102e57f8bp-29,
};
// (2 atanh(s)/s - 2)/s^2 in s^2, on [0.0, 0.029472]. Error 9.5e-18.
static const double c_log[7] = {
    0x1.5555555555558p-1, 0x1.9999999995261p-2, 0x1.2492492dff905p-2, 0x1.c71c62d34ccd6p-3, 0x1.7462b9d873fd0p-3,
    0x1.39fdb46b1eaf8p-3, 0x1.2b609728174cbp-3,
};
// (sin(r) - r)/r^3 in r^2, on [0.0, 0.61842]. Error 5.7e-18.
static const double c_sin[7] = {
    -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019921p-13, 0x1.71de3a545dd92p-19,
    -0x1.ae64540e0633bp-26, 0x1.61217b49ad79ap-33, -0x1.ab159dc3b3c21p-41,
};
// (cos(r) - 1 + r^2/2)/r^4 in r^2, on [0.0, 0.61842]. Error 8.7e-19.
static const double c_cos[7] = {
    0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d00p-16, -0x1.27e4fb77119ecp-22,
    0x1.1eed8de97b2c8p-29, -0x1.9394b6b53b9c8p-37, 0x1.ab76634757375p-45,
};
// (tanh(x)/x - 1)/x^2 in x^2, on [0.0, 0.3025]. Error 4.7e-18.
static const double c_tanh[11] = {
    -0x1.5555555555555p-2, 0x1.1111111111032p-3, -0x1.ba1ba1b9fec84p-5, 0x1.664f487713373p-6, -0x1.226e32f00cf0cp-7,
    0x1.d6d339333f329p-9, -0x1.7d97cfd138c28p-10, 0x1.34c5a8a996cd4p-11, -0x1.ec1091436eb2ap-13,
    0x1.64fd88e9900a5p-14, -0x1.59a834187ce22p-16,
};
// erf(x)/x - 1 in x^2, on [0.0, 0.7225]. Error 1.2e-17.
static const double c_erf[14] = {
    0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042be2p-4, -0x1.b82ce31288b44p-6, 0x1.565bcd0e6a189p-8,
    -0x1.c02db4002c225p-11, 0x1.f9a326f517c03p-14, -0x1.f4d25b891300bp-17, 0x1.b9e6b692d261ep-20,
    -0x1.5f72bb5578191p-23, 0x1.fc9e1a650aae4p-27, -0x1.50669ea9f06f8p-30, 0x1.8c92e3ce15e4dp-34,
    -0x1.521cba158e998p-38,
};
// (1 + 2x) e^(x^2) erfc(x) - 1 in (x-4)/(x+4), for x >= 1/2, on [-0.77778, 1.0]. Error 1.8e-17.
static const double c_erfcx[24] = {
    0x1.dd2c8b74febf6p-3, -0x1.1df1ad154a28ep-3, 0x1.f7f5df66fdb01p-7, 0x1.16ecefcfa5302p-4, -0x1.9ddb23c3eaa04p-4,
    0x1.7fee004e13fd3p-4, -0x1.0fb06dfe23568p-4, 0x1.3079edf638b81p-5, -0x1.0962388c72492p-6, 0x1.49c672a31184ap-8,
    -0x1.8d4a9329a289ap-11, -0x1.a1df40d221e84p-13, 0x1.3bdfc1271e7b7p-13, -0x1.9955283a149c3p-16,
    -0x1.786d7f14c3ec9p-17, 0x1.7ef5cbadc78c6p-18, 0x1.33f08ed87bf7ep-22, -0x1.b7e8cff542b18p-21,
    0x1.650d802702bc0p-24, 0x1.ba15570a60189p-24, -0x1.982485fcfb85ep-26, -0x1.412a689fa716cp-27,
    0x1.ebdca0df8ed73p-29, -0x1.c0f3551c3e1dap-34,
};
// lgamma(2 + t)/t, on [0.0, 1.0]. Error 2.0e-17.
static const double c_lgamma[18] = {
    0x1.b0ee6072093cep-2, 0x1.4a34cc4a60fa5p-2, -0x1.13e001a557487p-4, 0x1.51322ac7c836cp-6, -0x1.e404fc1bdad54p-8,
    0x1.7add6e0f6221ap-9, -0x1.38ac50c3222bdp-10, 0x1.0b361bb7f064dp-11, -0x1.d3f26557dddc9p-13,
    0x1.a0dab4c5c044ap-14, -0x1.77408d202d7a0p-15, 0x1.515c3e26e382ap-16, -0x1.2737cbacdee3bp-17,
    0x1.df3a7deb1832dp-19, -0x1.4f154d283441dp-20, 0x1.6cd577e38b25fp-22, -0x1.0a6290b538d96p-24,
    0x1.7e6e7b6ff8f9ap-28,
};
// y (lgamma(y) - (y - 1/2) log(y) + y - log(2 pi)/2) in 1/y^2, for y >= 8, on [0.0, 0.015625]. Error 4.6e-18.
static const double c_stirling[8] = {
    0x1.5555555555555p-4, -0x1.6c16c16c16b29p-9, 0x1.a01a019ee0dbep-11, -0x1.38137ec070147p-11, 0x1.b94f6d6592192p-11,
    -0x1.f5ff2fdcdf048p-10, 0x1.96db40614b193p-8, -0x1.55b3a71b66a2ep-6,
};
#define DIGAMMA_ROOT_0 0x1.762d86356be3fp+0
#define DIGAMMA_ROOT_1 0x1.b86a722197829p-54
// digamma(x)/(x - root) in x - 3/2, on [-0.5, 0.5]. Error 8.0e-17.
static const double c_digamma[22] = {
    0x1.e6f0cbb873617p-1, -0x1.b1cb63005ee97p-2, 0x1.eca189b8e6da1p-3, -0x1.2feeeb98a7cd8p-3, 0x1.8512e5905d180p-4,
    -0x1.fb442029cdbf4p-5, 0x1.4de9aa05d3418p-5, -0x1.b9f8b1367959dp-6, 0x1.256475e5ac975p-6, -0x1.86355f6f68797p-7,
    0x1.03c00801ba958p-7, -0x1.5a071c746535bp-8, 0x1.cd3e42d157015p-9, -0x1.33661f9073563p-9, 0x1.980fc9c9f0be8p-10,
    -0x1.1002aaf6255f5p-10, 0x1.7b3b41b0b38cdp-11, -0x1.f99f529bd0771p-12, 0x1.dc8ae08af0fc4p-13,
    -0x1.3db05b36d9a48p-13, 0x1.104c9d0897b58p-12, -0x1.6b107f71aa124p-13,
};
// y^2 (log(y) - 1/(2y) - digamma(y)) in 1/y^2, for y >= 6, on [0.0, 0.027778]. Error 1.2e-19.
static const double c_digamma_tail[9] = {
    0x1.5555555555555p-4, -0x1.1111111110839p-7, 0x1.041040ffe2d6dp-8, -0x1.11110af266f01p-8, 0x1.f077969fc7983p-8,
    -0x1.591b31055814cp-6, 0x1.4d9027aef6f64p-4, -0x1.78afabe10fc96p-2, 0x1.3d3a1cf7ffb94p+0,
};
// y^3 (trigamma(y) - 1/y - 1/(2 y^2)) in 1/y^2, for y >= 8, on [0.0, 0.015625]. Error 1.4e-19.
static const double c_trigamma_tail[8] = {
    0x1.5555555555555p-3, -0x1.11111111100fbp-5, 0x1.8618617b7b459p-6, -0x1.1111065760c00p-5, 0x1.36483713ee3aep-4,
    -0x1.0273c0acea2e4p-2, 0x1.1bff07a3b5495p+0, -0x1.24d1c876e87ffp+2,
};
