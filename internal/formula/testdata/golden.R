# Writes golden_r.json: matrices of model.matrix, poly and bs, and smooths of mgcv 1.8-41, for the tests of this package.
#
#     Rscript golden.R > golden_r.json
suppressMessages({library(mgcv); library(splines)})
set.seed(3)
n <- 24
x <- round(rnorm(n), 3); z <- round(runif(n, 1, 5), 3)
a <- rep(c("a1", "a2"), length.out = n); b <- rep(c("b1", "b2", "b3"), each = 2, length.out = n)
table <- data.frame(x = x, z = z, a = factor(a), b = factor(b))
new <- data.frame(x = c(-5, -1, 0.25, 4), z = c(0.2, 2, 3.3, 7), a = factor("a2", levels = c("a1", "a2")),
                  b = factor(c("b1", "b3", "b2", "b3"), levels = c("b1", "b2", "b3")))
num <- function(v) sprintf("[%s]", paste(sprintf("%.17g", v), collapse = ","))
str <- function(v) sprintf("[%s]", paste(sprintf("\"%s\"", v), collapse = ","))
flat <- function(m) num(as.vector(t(m)))                     # row after row
formulas <- c("x", "x + z", "a", "b", "0 + a", "0 + b + a", "a + b", "a*b", "0 + a*b", "x*a", "x*b", "a:x", "x + a:x",
  "a + a:b", "b + a:b", "a/b", "a/x", "a*b*x", "(a + b + x)^2", "(a + x + z)^3", "a*b - a", "x*z", "0 + x*z", "0 + x:a",
  "I(x^2) + x", "log(z)*a", "poly(x, 3)", "poly(x, 2)*a", "poly(z, 3, raw = TRUE)", "bs(z, df = 5)",
  "bs(x, df = 6, degree = 2)", "bs(z, knots = c(2, 3))", "bs(z, df = 5, intercept = TRUE) + 0", "scale(x) + scale(z)",
  "a + x %in% a", "x + a + b + a:b + a:x + b:x + a:b:x")
matrices <- sapply(formulas, function(f) {
  m <- model.matrix(as.formula(paste("~", f)), table)
  one <- colnames(m) == "(Intercept)"
  sprintf("{\"formula\":\"~ %s\",\"columns\":%d,\"x\":%s}", f, sum(!one), flat(m[, !one, drop = FALSE]))
})
# What new data get from what was learned.
learned <- c("poly(x, 3)", "bs(z, df = 5)", "scale(x)", "bs(x, df = 6, degree = 2)", "poly(x, 2) * b")
predictions <- sapply(learned, function(f) {
  frame <- model.frame(as.formula(paste("~", f)), table)
  m <- suppressWarnings(model.matrix(terms(frame), model.frame(terms(frame), new)))[, -1, drop = FALSE]
  sprintf("{\"formula\":\"~ %s\",\"columns\":%d,\"x\":%s}", f, ncol(m), flat(m))
})
# The covariance Z Z' of a smooth with iid coefficients does not depend on how these are turned.
smooth <- function(k, by, data, level) {
  text <- sprintf("s(x, k = %d, bs = \"cr\"%s)", k, if (by == "") "" else paste(", by =", by))
  spec <- eval(parse(text = text))
  sm <- smoothCon(spec, table, absorb.cons = TRUE)[[max(1, level)]]
  re <- smooth2random(sm, "", type = 2)
  if (!is.null(data)) {
    p <- PredictMat(sm, data)
    if (!is.null(re$trans.U)) p <- p %*% re$trans.U
    p <- t(t(p) * re$trans.D)
    return(p[, re$rind, drop = FALSE])
  }
  re$rand[[1]]
}
cases <- list(list(10, "", 0), list(5, "", 0), list(3, "", 0), list(6, "a", 1), list(6, "a", 2), list(7, "z", 0))
smooths <- sapply(cases, function(c) {
  z0 <- smooth(c[[1]], c[[2]], NULL, c[[3]]); z1 <- smooth(c[[1]], c[[2]], new, c[[3]])
  sprintf("{\"k\":%d,\"by\":\"%s\",\"level\":%d,\"train\":%s,\"new\":%s}", c[[1]], c[[2]], max(0, c[[3]] - 1),
          flat(z0 %*% t(z0)), flat(z1 %*% t(z1)))
})
cat(sprintf("{\"x\":%s,\"z\":%s,\"a\":%s,\"b\":%s,\n", num(x), num(z), str(a), str(b)))
cat(sprintf("\"new_x\":%s,\"new_z\":%s,\"new_a\":%s,\"new_b\":%s,\n", num(new$x), num(new$z), str(new$a), str(new$b)))
cat(sprintf("\"matrices\":[%s],\n\"predictions\":[%s],\n\"smooths\":[%s]}\n", paste(matrices, collapse = ",\n"),
            paste(predictions, collapse = ",\n"), paste(smooths, collapse = ",\n")))
