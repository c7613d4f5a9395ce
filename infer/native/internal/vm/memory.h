// Loads and stores of every form but arrays without gaps of float64, which kernels use in place.
//
// Operand 1 is the data of a load, operand 0 that of a store. The element of iteration i is p·i, or the number in the
// table at operand 3 (flag 9), plus q times the index: element i of operand 2 (flag 8), or the one that the table at
// operand 4 (flag 10) names. Tables hold int64. Bits 12 to 15 of the flags are the type of the elements.
#define HAS_INDEX (in->flags >> 8 & 1)
#define HAS_TABLE (in->flags >> 9 & 1)
#define INDEX_TABLE (in->flags >> 10 & 1)
#define TYPE (in->flags >> 12)

FN long place(const kvm_instr *in, char *const *bases, long i) {
  long at = HAS_TABLE ? ((const int64_t *)AT(3))[i] : in->p * i;
  if (HAS_INDEX) {
    const int32_t *index = (const int32_t *)AT(2);
    at += in->q * index[INDEX_TABLE ? ((const int64_t *)AT(4))[i] : i];
  }
  return at;
}

FN double element(const void *p, int type, long i) {
  switch (type) {
  case T_F32: return ((const float *)p)[i];
  case T_I64: return (double)((const int64_t *)p)[i];
  case T_U8: return ((const uint8_t *)p)[i];
  case T_I32: return ((const int32_t *)p)[i];
  }
  return ((const double *)p)[i];
}

KERNEL(k_load) {
  double *d = AT(0);
  const double *a = AT(1);
  if (TYPE != T_F64) {
    for (long i = 0; i < n; i++) d[i] = element(a, TYPE, place(in, bases, i));
  } else if (HAS_INDEX) {
    for (long i = 0; i < n; i++) d[i] = a[place(in, bases, i)];
  } else if (HAS_TABLE) {
    const int64_t *table = (const int64_t *)AT(3);
    long i = 0;
    for (; i + W <= n; i += W) st(d + i, gather(a, table + i));
    for (; i < n; i++) d[i] = a[table[i]];
  } else {
    long p = in->p;
    for (long i = 0; i < n; i++) d[i] = a[p * i];
  }
}

KERNEL(k_store) {
  double *d = AT(0);
  const double *a = AT(1);
  int one = SINGLE(1);
  for (long i = 0; i < n; i++) d[place(in, bases, i)] = a[one ? 0 : i];
}

// In the order of the loop.
KERNEL(k_scatter) {
  double *d = AT(0);
  const double *a = AT(1);
  int one = SINGLE(1);
  for (long i = 0; i < n; i++) d[place(in, bases, i)] += a[one ? 0 : i];
}

// A checked index. q is its limit. Where it fails the index is 0, so that what follows stays inside its buffers, and
// the status becomes off[4], the number of the step, unless an earlier one failed.
KERNEL(k_index) {
  int32_t *d = (int32_t *)AT(0);
  const double *a = AT(1);
  int one = SINGLE(1);
  for (long i = 0; i < n; i++) {
    double v = a[one ? 0 : i];
    long at = HAS_TABLE ? ((const int64_t *)AT(3))[i] : in->p * i;
    if (!(v >= 0 && v < (double)in->q) || v != __builtin_trunc(v)) {
      int64_t *status = (int64_t *)bases[B_STATUS];
      if (!*status) *status = in->off[4];
      v = 0;
    }
    d[at] = (int32_t)v;
  }
}

// The last element of an array.
KERNEL(k_last) { *AT(0) = AT(1)[n - 1]; }
