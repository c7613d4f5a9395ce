// The interpreter of a program.
static void run(const kvm_instr *in, char **bases) {
  for (; in->run; in++) ((kernel)in->run)(in, bases, in->n);
}

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

KERNEL(k_loop) {
  (void)n;
  const kvm_loop *l = (const kvm_loop *)(bases[B_POOL] + in->p);
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

KERNEL(k_fill) {
  (void)n;
  const kvm_fill *f = (const kvm_fill *)(bases[B_POOL] + in->p);
  double *to = AT(0), value = *AT(1);
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

#define STEP_KERNEL(f)                                                                                                \
  KERNEL(k_##f) {                                                                                                     \
    (void)n;                                                                                                          \
    f((const kvm_step *)(bases[B_POOL] + in->p), bases);                                                              \
  }
STEP_KERNEL(matmul)
STEP_KERNEL(cholesky)
STEP_KERNEL(solve)
STEP_KERNEL(scan)
STEP_KERNEL(foreign)

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
