#include "datasets/loader_plan.h"

#include <inttypes.h>

#include "core/alloc.h"
#include "core/philox.h"

int64_t sn_plan_window(const sn_plan *plan, int64_t place, uint64_t *epoch) {
  int64_t n = plan->source->n_windows;
  *epoch = (uint64_t)(place / n);
  return (int64_t)sn_bijection(plan->seed, SN_PURPOSE_ORDER, *epoch, (uint64_t)n, (uint64_t)(place % n));
}

sn_status sn_plan_pack(const sn_plan *plan, int64_t first, int64_t *n_places, int64_t **windows, int64_t *capacity,
                       sn_error *err) {
  const sn_source *source = plan->source;
  int64_t tokens = 0, n = 0;
  for (;;) {
    uint64_t epoch = 0;
    int64_t window = sn_plan_window(plan, first + n, &epoch);
    int64_t nominal = source->vtable->nominal_tokens(source, window);
    if (nominal < source->min_tokens || nominal > source->max_tokens) {
      return sn_fail(err, SN_E_STATE,
                     "source %s: window %" PRId64 " names %" PRId64 " tokens, outside its own range %" PRId64
                     "..%" PRId64,
                     source->vtable->name, window, nominal, source->min_tokens, source->max_tokens);
    }
    nominal *= plan->n_views;
    if (n > 0 && tokens + nominal > plan->pack_tokens) break;
    SN_TRY(sn_grow(windows, capacity, n + 1, sizeof **windows, "plan of a pack", err));
    (*windows)[n++] = window;
    tokens += nominal;
    /* Nothing else can fit: saves drawing the next place twice. */
    if (plan->pack_tokens - tokens < source->min_tokens * plan->n_views) break;
  }
  *n_places = n;
  return SN_OK;
}
