#include "kernels/onednn.h"

#ifdef SONDE_HAVE_ONEDNN
#include <dnnl.h>
#include <omp.h>
#include <string.h>
#include <sys/mman.h>

#include "core/alloc.h"
#include "kernels/gemm/gemm_panels.h"

bool sn_onednn_has_bf16(void) {
  dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}

struct sn_onednn_product {
  sn_onednn_product *next;
  sn_onednn_product_key key;
  dnnl_primitive_t matmul, reorder;
  dnnl_memory_desc_t b_layout;
  const sn_onednn_product *layout; /* the first product with an equal b_layout */
  dnnl_memory_t a, b, bias, c, plain, scratchpad, reorder_scratchpad;
  bool panels;             /* b_layout is that of kernels/gemm/gemm_panels.h: packed there, without a reorder */
};

typedef struct backend {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  sn_onednn_product *products;
  void *scratchpad;
  int64_t scratchpad_bytes;
} backend;

static sn_status check(dnnl_status_t status, const char *what, sn_error *err) {
  if (status == dnnl_success) return SN_OK;
  return sn_fail(err, status == dnnl_out_of_memory ? SN_E_MEMORY : SN_E_DEVICE, "oneDNN: %s: status %d", what, (int)status);
}

static void destroy_product(sn_onednn_product *p) {
  if (p->matmul != NULL) dnnl_primitive_destroy(p->matmul);
  if (p->reorder != NULL) dnnl_primitive_destroy(p->reorder);
  dnnl_memory_t memories[] = {p->a, p->b, p->bias, p->c, p->plain, p->scratchpad, p->reorder_scratchpad};
  for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++)
    if (memories[i] != NULL) dnnl_memory_destroy(memories[i]);
  sn_free(p);
}

static void destroy_backend(void *data) {
  backend *b = data;
  for (sn_onednn_product *p = b->products; p != NULL;) {
    sn_onednn_product *next = p->next;
    destroy_product(p);
    p = next;
  }
  if (b->stream != NULL) dnnl_stream_destroy(b->stream);
  if (b->engine != NULL) dnnl_engine_destroy(b->engine);
  sn_free(b->scratchpad);
  sn_free(b);
}

static sn_status backend_of(sn_device *device, backend **out, sn_error *err) {
  if (device->backend == NULL) {
    backend *b;
    SN_TRY(sn_alloc(&b, 1, sizeof *b, "oneDNN", err));
    sn_status status;
    SN_TRY_GOTO(check(dnnl_engine_create(&b->engine, dnnl_cpu, 0), "engine", err), fail);
    SN_TRY_GOTO(check(dnnl_stream_create(&b->stream, b->engine, dnnl_stream_default_flags), "stream", err), fail);
    device->backend = b;
    device->backend_destroy = destroy_backend;
    goto done;
  fail:
    destroy_backend(b);
    return status;
  }
done:
  *out = device->backend;
  return SN_OK;
}

static dnnl_data_type_t type_of(sn_dtype dtype) { return dtype == SN_BF16 ? dnnl_bf16 : dnnl_f32; }

/* A matrix (rows, columns), lying as it is written or transposed. */
static sn_status describe(dnnl_memory_desc_t *md, int64_t rows, int64_t columns, sn_dtype dtype, dnnl_format_tag_t tag,
                          sn_error *err) {
  dnnl_dims_t dims = {rows, columns};
  return check(dnnl_memory_desc_init_by_tag(md, 2, dims, type_of(dtype), tag), "memory descriptor", err);
}

typedef struct descriptors {
  dnnl_memory_desc_t a, b, b_plain, bias, c;
} descriptors;

static sn_status describe_all(const sn_onednn_product_key *key, descriptors *d, sn_error *err) {
  dnnl_format_tag_t b_tag = key->b_transposed ? dnnl_ba : dnnl_ab;
  SN_TRY(describe(&d->a, key->m, key->k, key->a, key->a_transposed ? dnnl_ba : dnnl_ab, err));
  SN_TRY(describe(&d->b, key->k, key->n, key->b, key->b_packed ? dnnl_format_tag_any : b_tag, err));
  SN_TRY(describe(&d->b_plain, key->k, key->n, key->b_packed ? key->b_source : key->b, b_tag, err));
  SN_TRY(describe(&d->c, key->m, key->n, key->c, dnnl_ab, err));
  if (key->bias != SN_U8) SN_TRY(describe(&d->bias, 1, key->n, key->bias, dnnl_ab, err));
  return SN_OK;
}

/* Attributes: the library's scratchpad comes from us; acc is a sum applied after the product. */
static sn_status attributes(bool acc, dnnl_primitive_attr_t *out, sn_error *err) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_post_ops_t sum = NULL;
  sn_status status;
  SN_TRY_GOTO(check(dnnl_primitive_attr_create(&attr), "attributes", err), done);
  SN_TRY_GOTO(check(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), "scratchpad mode", err), done);
  if (acc) {
    SN_TRY_GOTO(check(dnnl_post_ops_create(&sum), "post-op", err), done);
    SN_TRY_GOTO(check(dnnl_post_ops_append_sum(sum, 1.0f), "post-op", err), done);
    SN_TRY_GOTO(check(dnnl_primitive_attr_set_post_ops(attr, sum), "post-op", err), done);
  }
done:
  if (sum != NULL) dnnl_post_ops_destroy(sum);
  if (status != SN_OK && attr != NULL) dnnl_primitive_attr_destroy(attr);
  else *out = attr;
  return status;
}

static sn_status new_memory(const backend *b, dnnl_memory_t *out, const dnnl_memory_desc_t *md, sn_error *err) {
  return check(dnnl_memory_create(out, md, b->engine, DNNL_MEMORY_NONE), "memory", err);
}

/* The memory object for a primitive's scratchpad, and room for it in the backend's buffer. */
static sn_status scratchpad_for(backend *b, const_dnnl_primitive_desc_t pd, dnnl_memory_t *out, sn_error *err) {
  const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  int64_t bytes = (int64_t)dnnl_memory_desc_get_size(md);
  if (bytes > b->scratchpad_bytes) {
    void *fresh;
    SN_TRY(sn_alloc_aligned(&fresh, bytes, "oneDNN scratchpad", err));
    sn_free(b->scratchpad);
    b->scratchpad = fresh;
    b->scratchpad_bytes = bytes;
  }
  return new_memory(b, out, md, err);
}

static sn_status build_reorder(backend *b, sn_onednn_product *p, const descriptors *d, sn_error *err) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr;
  SN_TRY(attributes(false, &attr, err));
  sn_status status = check(dnnl_reorder_primitive_desc_create(&pd, &d->b_plain, b->engine, &p->b_layout, b->engine, attr),
                           "reorder", err);
  dnnl_primitive_attr_destroy(attr);
  if (status != SN_OK) return status;
  SN_TRY_GOTO(check(dnnl_primitive_create(&p->reorder, pd), "reorder", err), done);
  SN_TRY_GOTO(scratchpad_for(b, pd, &p->reorder_scratchpad, err), done);
  SN_TRY_GOTO(new_memory(b, &p->plain, &d->b_plain, err), done);
done:
  dnnl_primitive_desc_destroy(pd);
  return status;
}

static sn_status build_matmul(backend *b, sn_onednn_product *p, const descriptors *d, sn_error *err) {
  dnnl_matmul_desc_t md;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr;
  bool bias = p->key.bias != SN_U8;
  SN_TRY(check(dnnl_matmul_desc_init(&md, &d->a, &d->b, bias ? &d->bias : NULL, &d->c), "matmul", err));
  SN_TRY(attributes(p->key.acc, &attr, err));
  sn_status status = check(dnnl_primitive_desc_create(&pd, &md, attr, b->engine, NULL), "matmul", err);
  dnnl_primitive_attr_destroy(attr);
  if (status != SN_OK) return status;
  p->b_layout = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  SN_TRY_GOTO(check(dnnl_primitive_create(&p->matmul, pd), "matmul", err), done);
  SN_TRY_GOTO(scratchpad_for(b, pd, &p->scratchpad, err), done);
  SN_TRY_GOTO(new_memory(b, &p->a, &d->a, err), done);
  SN_TRY_GOTO(new_memory(b, &p->b, &p->b_layout, err), done);
  SN_TRY_GOTO(new_memory(b, &p->c, &d->c, err), done);
  if (bias) SN_TRY_GOTO(new_memory(b, &p->bias, &d->bias, err), done);
done:
  dnnl_primitive_desc_destroy(pd);
  return status;
}

/* Whether B (k, n) is wanted in panels of 64 columns that we fill ourselves. */
static bool is_in_panels(const sn_device *device, const sn_onednn_product *p) {
  const sn_onednn_product_key *key = &p->key;
  const dnnl_memory_desc_t *md = &p->b_layout;
  const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
  const bool pairs = key->b == SN_BF16;
  if (key->b_source != SN_F32 || key->k % SN_GEMM_PANEL_K != 0 || key->n % SN_GEMM_PANEL_N != 0) return false;
  if (device->isa < (pairs ? SN_ISA_AVX512_BF16 : SN_ISA_AVX512)) return false;
  if (md->format_kind != dnnl_blocked || md->ndims != 2 || md->offset0 != 0 || md->extra.flags != dnnl_memory_extra_flag_none ||
      md->padded_dims[0] != key->k || md->padded_dims[1] != key->n)
    return false;
  const int64_t inner[3] = {16, SN_GEMM_PANEL_N, 2};
  const int dims[3] = {0, 1, 0};
  if (blocking->inner_nblks != (pairs ? 3 : 2)) return false;
  for (int i = 0; i < blocking->inner_nblks; i++)
    if (blocking->inner_blks[i] != inner[i] || blocking->inner_idxs[i] != dims[i]) return false;
  return blocking->strides[0] == 16 * SN_GEMM_PANEL_N * (pairs ? 2 : 1) && blocking->strides[1] == key->k * SN_GEMM_PANEL_N;
}

/* oneDNN (2.7 and 3) writes the code that it generates, 256 KiB a kernel, without asking whether the memory for it could be
 * had: dnnl_primitive_create crashes where address space runs out (ulimit -v, memory cgroups do not matter). So it is asked
 * for here first, more than any product takes, and given back. */
static sn_status check_room(sn_error *err) {
  const size_t bytes = (size_t)48 << 20;
  void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return sn_fail(err, SN_E_MEMORY, "less than 48 MiB of address space are left, which a product of oneDNN may take to be built: "
                   "a higher limit (ulimit -v), or a smaller train.pack_tokens");
  munmap(room, bytes);
  return SN_OK;
}

static sn_status build(sn_device *device, backend *b, const sn_onednn_product_key *key, sn_onednn_product **out,
                       sn_error *err) {
  sn_onednn_product *p;
  descriptors d;
  sn_status status;
  SN_TRY(describe_all(key, &d, err));
  SN_TRY(check_room(err));
  SN_TRY(sn_alloc(&p, 1, sizeof *p, "oneDNN product", err));
  p->key = *key;
  int threads = omp_get_max_threads(); /* fixed when a primitive is built */
  omp_set_num_threads(device->n_threads);
  status = build_matmul(b, p, &d, err);
  p->panels = status == SN_OK && key->b_packed && is_in_panels(device, p);
  if (status == SN_OK && key->b_packed && !p->panels) status = build_reorder(b, p, &d, err);
  omp_set_num_threads(threads);
  if (status != SN_OK) {
    destroy_product(p);
    return status;
  }
  p->layout = p;
  for (sn_onednn_product *q = b->products; q != NULL; q = q->next)
    if (q->layout == q && dnnl_memory_desc_equal(&q->b_layout, &p->b_layout)) p->layout = q;
  p->next = b->products;
  b->products = p;
  device->primitives_created++;
  *out = p;
  return SN_OK;
}

/* HOW IT WORKS: descriptors -> matmul (which chooses the layout of B) -> reorder into that layout -> memory objects, whose
 * data handles are set at each run. */
sn_status sn_onednn_product_get(sn_device *device, const sn_onednn_product_key *key, sn_onednn_product **out,
                                sn_error *err) {
  backend *b;
  SN_TRY(backend_of(device, &b, err));
  for (sn_onednn_product *p = b->products; p != NULL; p = p->next)
    if (memcmp(&p->key, key, sizeof *key) == 0) {
      *out = p;
      return SN_OK;
    }
  return build(device, b, key, out, err);
}

int64_t sn_onednn_packed_bytes(const sn_onednn_product *product) {
  return (int64_t)dnnl_memory_desc_get_size(&product->b_layout);
}
const void *sn_onednn_packed_layout(const sn_onednn_product *product) { return product->layout; }

static sn_status execute(sn_device *device, dnnl_primitive_t primitive, int n, const dnnl_exec_arg_t *args,
                         void *const *handles, sn_error *err) {
  backend *b = device->backend;
  for (int i = 0; i < n; i++)
    SN_TRY(check(dnnl_memory_set_data_handle(args[i].memory, handles[i]), "data handle", err));
  int threads = omp_get_max_threads();
  omp_set_num_threads(device->n_threads);
  dnnl_status_t status = dnnl_primitive_execute(primitive, b->stream, n, args);
  if (status == dnnl_success) status = dnnl_stream_wait(b->stream);
  omp_set_num_threads(threads);
  return check(status, "execution", err);
}

sn_status sn_onednn_pack(sn_device *device, sn_onednn_product *p, void *packed, const void *plain, sn_error *err) {
  if (p->panels) {
#pragma omp parallel num_threads(device->n_threads)
    sn_gemm_pack_panels_part(packed, plain, p->key.n, p->key.k, p->key.b_transposed, p->key.b == SN_BF16,
                             omp_get_thread_num(), omp_get_num_threads());
    return SN_OK;
  }
  backend *b = device->backend;
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->plain}, {DNNL_ARG_TO, p->b}, {DNNL_ARG_SCRATCHPAD, p->reorder_scratchpad}};
  void *const handles[] = {(void *)(uintptr_t)plain, packed, b->scratchpad};
  return execute(device, p->reorder, 3, args, handles, err);
}

sn_status sn_onednn_run(sn_device *device, sn_onednn_product *p, void *c, const void *a, const void *b_data,
                        const void *bias, sn_error *err) {
  backend *b = device->backend;
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->a}, {DNNL_ARG_WEIGHTS, p->b}, {DNNL_ARG_DST, p->c},
                                  {DNNL_ARG_SCRATCHPAD, p->scratchpad}, {DNNL_ARG_BIAS, p->bias}};
  void *const handles[] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b_data, c, b->scratchpad, (void *)(uintptr_t)bias};
  return execute(device, p->matmul, p->bias != NULL ? 5 : 4, args, handles, err);
}
#else
bool sn_onednn_has_bf16(void) { return false; }
#endif
