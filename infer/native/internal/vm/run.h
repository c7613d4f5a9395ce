// The interpreter of a program: instructions on single numbers, and calls of kernels.
#define NUMBER_AT(k) (*(double *)(bases[in->base[k]] + in->off[k]))
#define ADDRESS(k) (bases[in->base[k]] + in->off[k])

// One number through a function on vectors, so that both give the same bits.
#define SCALAR1(f)                                                                                                    \
  FN double s##f(double x) { return v##f(splat(x))[0]; }
#define SCALAR2(f)                                                                                                    \
  FN double s##f(double a, double b) { return v##f(splat(a), splat(b))[0]; }
UNARY(SCALAR1)
BINARY(SCALAR2)

static void run(const kvm_instr *in, char **bases);

// The blocks of one point of the outer dimensions.
static void blocks(const kvm_loop *l, const kvm_cursor *cursor, char **bases) {
  const kvm_instr *from = (const kvm_instr *)(bases[B_POOL] + l->block), *to = from + l->blocks;
  for (int64_t row = 0; row < l->rows; row += l->per_block) {
    long rows = l->rows - row < l->per_block ? l->rows - row : l->per_block;
    long n = rows * l->inner;
    for (const kvm_instr *in = from; in < to; in++) ((kernel)in->run)(in, bases, n);
    for (int64_t c = 0; c < l->cursors; c++) bases[l->first + c] += cursor[c].block;
  }
}

static void loop(const kvm_loop *l, char **bases) {
  const kvm_cursor *cursor = (const kvm_cursor *)(bases[B_POOL] + l->cursor);
  int64_t at[KVM_OUTER] = {0};
  for (;;) {
    for (int64_t c = 0; c < l->cursors; c++) {
      int64_t off = cursor[c].off;
      for (int d = 0; d < l->outers; d++) off += cursor[c].outer[d] * at[d];
      bases[l->first + c] = bases[cursor[c].base] + off;
    }
    run((const kvm_instr *)(bases[B_POOL] + l->outer), bases);
    blocks(l, cursor, bases);
    int d = l->outers - 1;
    for (; d >= 0; d--) {
      if (++at[d] < l->sizes[d]) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

static void fill(const kvm_fill *f, double *to, double value) {
  int64_t at[8] = {0};
  int last = f->dims - 1;
  for (;;) {
    if (last < 0) {
      *to = value;
      return;
    }
    double *p = to;
    for (int d = 0; d < last; d++) p += f->strides[d] * at[d];
    for (int64_t i = 0; i < f->sizes[last]; i++) p[f->strides[last] * i] = value;
    int d = last - 1;
    for (; d >= 0; d--) {
      if (++at[d] < f->sizes[d]) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

static void run(const kvm_instr *in, char **bases) {
#define LABEL1(f) &&op_##f,
  static const void *const labels[S_COUNT] = {
      &&end, &&array, &&loop_, &&matmul_, &&cholesky_, &&solve_, &&scan_, &&call_, &&fill_, &&move, &&load, &&index,
      &&scatter, &&fma, &&fms, &&fnma, &&select, &&if_lt, &&if_le, &&if_eq, &&if_ne, UNARY(LABEL1) BINARY(LABEL1)};
#define GO goto *labels[in->op]
#define NEXT                                                                                                          \
  do {                                                                                                                \
    in++;                                                                                                             \
    GO;                                                                                                               \
  } while (0)
  GO;
array:
  ((kernel)in->run)(in, bases, in->n);
  NEXT;
loop_:
  loop((const kvm_loop *)(bases[B_POOL] + in->p), bases);
  NEXT;
matmul_:
  matmul((const kvm_step *)(bases[B_POOL] + in->p), bases);
  NEXT;
cholesky_:
  cholesky((const kvm_step *)(bases[B_POOL] + in->p), bases);
  NEXT;
solve_:
  solve((const kvm_step *)(bases[B_POOL] + in->p), bases);
  NEXT;
scan_:
  scan((const kvm_step *)(bases[B_POOL] + in->p), bases);
  NEXT;
call_:
  foreign((const kvm_step *)(bases[B_POOL] + in->p), bases);
  NEXT;
fill_:
  fill((const kvm_fill *)(bases[B_POOL] + in->p), (double *)ADDRESS(0), NUMBER_AT(1));
  NEXT;
move:
  NUMBER_AT(0) = NUMBER_AT(1);
  NEXT;
load:
index:
scatter:
  ((kernel)in->run)(in, bases, 1);
  NEXT;
fma:
  NUMBER_AT(0) = SFMA(NUMBER_AT(1), NUMBER_AT(2), NUMBER_AT(3));
  NEXT;
fms:
  NUMBER_AT(0) = SFMA(NUMBER_AT(1), NUMBER_AT(2), -NUMBER_AT(3));
  NEXT;
fnma:
  NUMBER_AT(0) = SFMA(-NUMBER_AT(1), NUMBER_AT(2), NUMBER_AT(3));
  NEXT;
select:
  NUMBER_AT(0) = NUMBER_AT(1) != 0 ? NUMBER_AT(2) : NUMBER_AT(3);
  NEXT;
if_lt:
  NUMBER_AT(0) = NUMBER_AT(1) < NUMBER_AT(2) ? NUMBER_AT(3) : NUMBER_AT(4);
  NEXT;
if_le:
  NUMBER_AT(0) = NUMBER_AT(1) <= NUMBER_AT(2) ? NUMBER_AT(3) : NUMBER_AT(4);
  NEXT;
if_eq:
  NUMBER_AT(0) = NUMBER_AT(1) == NUMBER_AT(2) ? NUMBER_AT(3) : NUMBER_AT(4);
  NEXT;
if_ne:
  NUMBER_AT(0) = NUMBER_AT(1) != NUMBER_AT(2) ? NUMBER_AT(3) : NUMBER_AT(4);
  NEXT;
#define OP1(f)                                                                                                        \
  op_##f : NUMBER_AT(0) = s##f(NUMBER_AT(1));                                                                         \
  NEXT;
#define OP2(f)                                                                                                        \
  op_##f : NUMBER_AT(0) = s##f(NUMBER_AT(1), NUMBER_AT(2));                                                           \
  NEXT;
  UNARY(OP1)
  BINARY(OP2)
end:
  return;
}

// The table of bases of an evaluation, and one part of the program.
static int evaluate(const kelvin_call *call, int part) {
  const kvm_program *p = call->self;
  char **bases = (char **)(call->work + p->table);
  int64_t status = 0;
  bases[B_WORK] = call->work;
  bases[B_CONST] = (char *)call->consts;
  bases[B_PREPARED] = call->prepared;
  bases[B_POOL] = p->pool;
  bases[B_X] = (char *)call->x;
  bases[B_GRAD] = (char *)call->grad;
  bases[B_VALUE] = (char *)call->value;
  bases[B_WEIGHT] = (char *)&call->weight;
  bases[B_CALL] = (char *)call;
  bases[B_STATUS] = (char *)&status;
  for (int64_t i = 0; i < p->inputs; i++) bases[B_FIRST + i] = (char *)call->inputs[i];
  for (int64_t i = 0; part && i < p->outputs; i++) bases[B_FIRST + p->inputs + i] = (char *)call->aux[i];
  run(p->part[part], bases);
  return (int)status;
}

static int prologue(const kelvin_call *call) { return evaluate(call, 0); }
static int body(const kelvin_call *call) { return evaluate(call, 1); }
