/* Every objective in the training loop: resume to the same bytes, two ranks equal one, four packs equal one, loader threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/train_runs.h"

static const char COMMON[] = "jepa.predictor_width=16\njepa.predictor_heads=1\njepa.predictor_depth=1\n"
                             "contrast.projector_hidden=16\ncontrast.projector_width=8\ncontrast.positives=view\n";

static const char *const OBJECTIVES[] = {
    "objective.name=jepa\ntrain.ema=0\n",
    "objective.name=jepa\njepa.mask=multiblock\njepa.least_shown=1\njepa.predict=joint\ntrain.ema=0\n",
    "objective.name=contrast\n",
    "objective.name=contrast\ncontrast.learn_temperature=true\ncontrast.projector_norm=batch\n",
    "objective.name=mae+jepa+contrast\nobjective.weights=1,0:0 6:1,0.2\nobjective.compare_every=5\ntrain.ema=0\n"};
enum { N = sizeof OBJECTIVES / sizeof OBJECTIVES[0] };

static const char *with(char *out, size_t room, int i, const char *more) {
  snprintf(out, room, "%s%s%s", COMMON, OBJECTIVES[i], more);
  return out;
}

static void test_resume(void **state) {
  for (int i = 0; i < N; i++) {
    char whole[320], parts[320], a[32], b[32], settings[1024];
    with(settings, sizeof settings, i, "model.dropout=0.1\ntrain.packs_per_step=2\n");
    snprintf(a, sizeof a, "whole_%d", i);
    snprintf(b, sizeof b, "parts_%d", i);
    sn_train_result r = train(a, settings, false, 0, whole);
    assert_true(isfinite(r.loss) && r.primitives_after_10 == 0);
    train(b, settings, false, 5, parts);
    with(settings, sizeof settings, i, "model.dropout=0.1\ntrain.packs_per_step=2\ntrain.loader_threads=3\n");
    r = train(b, settings, true, 0, parts);
    assert_true(r.resumed);
    assert_same_run(whole, parts, 12);
  }
}

static void test_two_ranks_equal_one(void **state) {
  for (int i = 0; i < N; i++) {
    char one[320], two[320], name[32], settings[1024];
    rank_call calls[2];
    with(settings, sizeof settings, i, "train.packs_per_step=2\ntrain.dtype=f64\ntrain.threads=1\n");
    const char *extra[2] = {settings, settings};
    snprintf(name, sizeof name, "one_rank_%d", i);
    train(name, settings, false, 0, one);
    snprintf(two, sizeof two, "%s/two_ranks_%d", root, i);
    run_ranks(2, two, extra, calls);
    for (int r = 0; r < 2; r++)
      if (calls[r].status != SN_OK) fail_msg("%s: rank %d: %s", OBJECTIVES[i], r, calls[r].err.message);
    const double worst = worst_difference(one, two);
    if (!(worst <= 1e-9)) fail_msg("%s: two ranks differ from one by %g", OBJECTIVES[i], worst);
  }
}

/* Samples of one size, so that both cuts of a step hold exactly the same ones.  Contrast between samples needs the whole step
 * at once, and is the same in either cut. */
static void test_accumulation_equals_one_pack(void **state) {
  static const char BASE[] = "train.dtype=f64\nsynthetic.tokens_least=16\nsynthetic.tokens_most=16\nsynthetic.windows=64\n";
  for (int i = 0; i < N; i++) {
    char one[320], four[320], a[32], b[32], cut[512], settings[1024];
    snprintf(cut, sizeof cut, "%strain.pack_tokens=1024\ntrain.packs_per_step=1\n", BASE);
    snprintf(a, sizeof a, "packs_1_%d", i);
    train(a, with(settings, sizeof settings, i, cut), false, 0, one);
    snprintf(cut, sizeof cut, "%strain.pack_tokens=256\ntrain.packs_per_step=4\n", BASE);
    snprintf(b, sizeof b, "packs_4_%d", i);
    train(b, with(settings, sizeof settings, i, cut), false, 0, four);
    const double worst = worst_difference(one, four);
    /* Under batch norm a shift of the pooled rows has no gradient but rounding, which AdamW makes into steps of its own. */
    if (!(worst <= 1e-6)) fail_msg("%s: accumulation differs by %g", OBJECTIVES[i], worst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_resume), cmocka_unit_test(test_two_ranks_equal_one),
                                     cmocka_unit_test(test_accumulation_equals_one_pack)};
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
