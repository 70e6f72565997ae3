/* Parameters: names, starting values, decay sets, lists, repacked copies. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "kernels/packed.h"
#include "kernels/param.h"
#include "worst.h"

static sn_error err;
#define OK(expression)                                                       \
  do {                                                                       \
    if ((expression) != SN_OK) fail_msg("%s: %s", #expression, err.message); \
  } while (0)

enum { OUT = 64, IN = 128 };
static const int64_t MATRIX[2] = {OUT, IN}, VECTOR[1] = {OUT};

static sn_params *model(bool with_extra) {
  sn_params *params;
  sn_param *p;
  OK(sn_params_create(SN_F32, &params, &err));
  if (with_extra) OK(sn_params_add(params, "extra", SN_ROLE_TOKEN, 1, VECTOR, SN_INIT_NORMAL, 1, &p, &err));
  OK(sn_params_add(params, "a.weight", SN_ROLE_WEIGHT, 2, MATRIX, SN_INIT_XAVIER_UNIFORM, 0, &p, &err));
  OK(sn_params_add(params, "a.bias", SN_ROLE_BIAS, 1, VECTOR, SN_INIT_ZEROS, 0, &p, &err));
  OK(sn_params_add(params, "norm.weight", SN_ROLE_NORM, 1, VECTOR, SN_INIT_ONES, 0, &p, &err));
  OK(sn_params_add(params, "cls", SN_ROLE_TOKEN, 2, MATRIX, SN_INIT_TRUNC_NORMAL, 0.02, &p, &err));
  OK(sn_params_add(params, "conv.bias", SN_ROLE_BIAS, 1, VECTOR, SN_INIT_UNIFORM_FAN_IN, 49, &p, &err));
  OK(sn_params_add(params, "b.weight", SN_ROLE_WEIGHT, 2, MATRIX, SN_INIT_NORMAL, 0.5, &p, &err));
  return params;
}

static void names_are_strict(void **state) {
  sn_params *params = model(false), *none;
  sn_param *p;
  char longest[SN_PARAM_NAME + 1];
  memset(longest, 'x', sizeof longest - 1);
  longest[SN_PARAM_NAME] = '\0';
  const int64_t huge[2] = {INT64_MAX / 4, 16}, empty[1] = {0};
  assert_int_equal(sn_params_add(params, "cls", SN_ROLE_TOKEN, 1, VECTOR, SN_INIT_ONES, 0, &p, &err), SN_E_STATE);
  assert_int_equal(sn_params_add(params, "", SN_ROLE_TOKEN, 1, VECTOR, SN_INIT_ONES, 0, &p, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_params_add(params, longest, SN_ROLE_TOKEN, 1, VECTOR, SN_INIT_ONES, 0, &p, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_params_add(params, "huge", SN_ROLE_TOKEN, 2, huge, SN_INIT_ONES, 0, &p, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_params_add(params, "empty", SN_ROLE_TOKEN, 1, empty, SN_INIT_ONES, 0, &p, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_params_create(SN_BF16, &none, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_params_count(params), 6);
  assert_string_equal(sn_params_find(params, "cls")->name, "cls");
  assert_null(sn_params_find(params, "CLS"));
  assert_null(sn_params_at(params, 6));
  assert_int_equal(sn_params_elements(params, false), 3 * OUT * IN + 3 * OUT);
  sn_params_find(params, "cls")->frozen = true;
  assert_int_equal(sn_params_elements(params, true), 2 * OUT * IN + 3 * OUT);
  sn_params_destroy(params);
}

typedef struct moments {
  double mean, std, largest;
} moments;

static moments moments_of(const sn_param *p) {
  int64_t n = sn_tensor_count(&p->value);
  double sum = 0, squares = 0;
  moments m = {0};
  for (int64_t i = 0; i < n; i++) {
    double x = sn_tensor_get(&p->value, i);
    sum += x;
    squares += x * x;
    m.largest = worse_of(m.largest, fabs(x));
  }
  m.mean = sum / (double)n;
  m.std = sqrt(squares / (double)n - m.mean * m.mean);
  return m;
}

static void starting_values(void **state) {
  sn_params *params = model(false);
  uint64_t before = sn_params_find(params, "cls")->version;
  sn_params_init(params, 11);
  assert_true(sn_params_find(params, "cls")->version > before);
  double bound = sqrt(6.0 / (OUT + IN));
  moments xavier = moments_of(sn_params_find(params, "a.weight")), cut = moments_of(sn_params_find(params, "cls")),
          normal = moments_of(sn_params_find(params, "b.weight")), fan = moments_of(sn_params_find(params, "conv.bias"));
  assert_true(xavier.largest <= bound && xavier.largest > 0.99 * bound && fabs(xavier.std - bound / sqrt(3)) < 0.02 * bound);
  assert_true(cut.largest <= 0.04 + 1e-9 && cut.largest > 0.0385 && fabs(cut.std - 0.02 * 0.8796) < 0.0005);
  assert_true(fabs(normal.std - 0.5) < 0.02 && normal.largest > 1.5 && fabs(normal.mean) < 0.02);
  assert_true(fan.largest <= 1.0 / 7 && fan.largest > 0.1);
  assert_true(moments_of(sn_params_find(params, "a.bias")).largest == 0);
  moments ones = moments_of(sn_params_find(params, "norm.weight"));
  assert_true(ones.mean == 1 && ones.largest == 1);
  sn_params_destroy(params);
}

/* Another parameter changes no other's start; another seed does. */
static void starts_are_by_name(void **state) {
  sn_params *a = model(false), *b = model(true), *c = model(false);
  sn_params_init(a, 11);
  sn_params_init(b, 11);
  sn_params_init(c, 12);
  size_t bytes = sizeof(float) * OUT * IN;
  assert_memory_equal(sn_params_find(a, "cls")->value.data, sn_params_find(b, "cls")->value.data, bytes);
  assert_memory_equal(sn_params_find(a, "a.weight")->value.data, sn_params_find(b, "a.weight")->value.data, bytes);
  assert_true(memcmp(sn_params_find(a, "cls")->value.data, sn_params_find(c, "cls")->value.data, bytes) != 0);
  sn_params_destroy(a);
  sn_params_destroy(b);
  sn_params_destroy(c);
}

static void training_buffers(void **state) {
  sn_params *params = model(false);
  sn_params_init(params, 1);
  sn_param *frozen = sn_params_find(params, "cls"), *free_one = sn_params_find(params, "b.weight");
  frozen->frozen = true;
  OK(sn_params_prepare_training(params, true, &err));
  OK(sn_params_prepare_training(params, true, &err)); /* again: nothing is lost */
  assert_null(frozen->grad.data);
  assert_null(frozen->m.data);
  assert_non_null(frozen->ema.data);
  assert_memory_equal(free_one->ema.data, free_one->value.data, sizeof(float) * OUT * IN);
  ((float *)free_one->grad.data)[5] = 3;
  sn_params_zero_grad(params);
  assert_true(((float *)free_one->grad.data)[5] == 0);
  sn_params_destroy(params);
}

static void decay_sets(void **state) {
  sn_params *params = model(false);
  const struct { const char *set; const char *decayed; } cases[] = {
      {"tokens", "a.weight b.weight "},
      {"timm", "a.weight cls b.weight "},
      {"bert", "a.weight cls b.weight "},
      {"none", "a.weight a.bias norm.weight cls conv.bias b.weight "}};
  for (int i = 0; i < 4; i++) {
    char found[256] = "";
    OK(sn_params_set_decay(params, cases[i].set, &err));
    for (int64_t k = 0; k < sn_params_count(params); k++)
      if (sn_params_at(params, k)->decay) strcat(strcat(found, sn_params_at(params, k)->name), " ");
    assert_string_equal(found, cases[i].decayed);
  }
  assert_int_equal(sn_params_set_decay(params, "token", &err), SN_E_ARGUMENT);
  sn_params_destroy(params);
}

static void lists(void **state) {
  sn_params *params = model(false);
  sn_named_tensor *list;
  int64_t n;
  sn_params_find(params, "cls")->frozen = true;
  OK(sn_params_prepare_training(params, false, &err));
  OK(sn_params_list(params, 'w', &list, &n, &err));
  assert_int_equal(n, 6);
  assert_string_equal(list[5].name, "b.weight");
  assert_ptr_equal(list[5].tensor.data, sn_params_at(params, 5)->value.data);
  sn_free(list);
  OK(sn_params_list(params, 'v', &list, &n, &err));
  assert_int_equal(n, 5); /* the frozen one has no moments */
  assert_string_equal(list[4].name, "b.weight.v");
  assert_ptr_equal(list[4].tensor.data, sn_params_at(params, 5)->v.data);
  sn_free(list);
  OK(sn_params_list(params, 'e', &list, &n, &err));
  assert_int_equal(n, 0);
  sn_free(list);
  assert_int_equal(sn_params_list(params, 'x', &list, &n, &err), SN_E_ARGUMENT);
  sn_params_destroy(params);
}

static void repacked_copies(void **state) {
  sn_params *params = model(false);
  sn_param *p = sn_params_at(params, 0);
  static const int layout_a, layout_b;
  sn_packed *first, *again, *other;
  OK(sn_packed_get(p, &layout_a, 0, 100, &first, &err));
  assert_int_equal(first->version, 0);
  first->version = p->version;
  OK(sn_packed_get(p, &layout_a, 0, 100, &again, &err));
  assert_ptr_equal(first, again);
  OK(sn_packed_get(p, &layout_a, 1, 100, &other, &err));
  assert_ptr_not_equal(first, other);
  OK(sn_packed_get(p, &layout_b, 0, 200, &other, &err));
  assert_ptr_not_equal(first, other);
  assert_int_equal(sn_packed_get(p, &layout_a, 0, 101, &other, &err), SN_E_STATE);
  sn_params_destroy(params);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_strict), cmocka_unit_test(starting_values),
                                     cmocka_unit_test(starts_are_by_name), cmocka_unit_test(training_buffers),
                                     cmocka_unit_test(decay_sets), cmocka_unit_test(lists),
                                     cmocka_unit_test(repacked_copies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
