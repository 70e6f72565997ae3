#include "datasets/groups.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"

/* Windows [first, first + n) of a unit, in its order. */
typedef struct piece {
  uint64_t key;           /* of its unit */
  int64_t number;         /* of its unit: units that follow the grid are told apart by it */
  int32_t part;
  int64_t first, n;
  int64_t before;         /* windows of the unit (partners: of its part of it) before it */
  int64_t step, span;     /* windows from one member to the next, and of the span that members lie in; 1 and all: free */
} piece;

typedef struct unit {
  int64_t first_piece, n_pieces, n; /* n: windows */
  int64_t groups_before;
} unit;

struct sn_groups {
  int64_t group;
  bool adjacent, partners;
  uint64_t order_key;     /* of the order of groups, beside the seed */
  int64_t n_pieces, n_units, pieces_capacity;
  piece *pieces;          /* those of a unit stand together */
  unit *units;            /* only those with a group */
  sn_groups_report report;
};

/* ---- counting ---------------------------------------------------------------------------------------------------------- */

/* Groups of n windows that can all come together. */
static int64_t groups_of(const sn_groups *g, int64_t n) { return n / g->group + (n % g->group >= 2); }
static int64_t left_out_of(const sn_groups *g, int64_t n) { return n % g->group == 1 ? 1 : 0; }

/* Of a span of b windows, members `step` apart: b % step classes of b / step + 1 windows, the others of b / step. */
static int64_t groups_of_span(const sn_groups *g, int64_t b, int64_t step) {
  return b % step * groups_of(g, b / step + 1) + (step - b % step) * groups_of(g, b / step);
}

static int64_t left_out_of_span(const sn_groups *g, int64_t b, int64_t step) {
  return b % step * left_out_of(g, b / step + 1) + (step - b % step) * left_out_of(g, b / step);
}

static int64_t pieces_of_part(const sn_groups *g, const unit *u, int64_t from, int64_t *n) {
  int64_t i = from;
  const int64_t end = u->first_piece + u->n_pieces;
  *n = 0;
  for (; i < end && g->pieces[i].part == g->pieces[from].part; i++) *n += g->pieces[i].n;
  return i;
}

/* The second largest number of windows that a part has; all windows in *n_in that are in one of that many groups. */
static int64_t partner_groups(const sn_groups *g, const unit *u, int64_t *n_in) {
  int64_t largest = 0, second = 0, n;
  for (int64_t i = u->first_piece; i < u->first_piece + u->n_pieces;) {
    i = pieces_of_part(g, u, i, &n);
    if (n > largest) {
      second = largest;
      largest = n;
    } else if (n > second) {
      second = n;
    }
  }
  *n_in = u->n - (largest - second);
  return second;
}

static int64_t count_unit(const sn_groups *g, const unit *u, int64_t *n_in) {
  const piece *p = &g->pieces[u->first_piece];
  if (g->partners) return partner_groups(g, u, n_in);
  if (p->step == 1 && p->span >= u->n) {
    *n_in = u->n - left_out_of(g, u->n);
    return groups_of(g, u->n);
  }
  const int64_t whole = u->n / p->span, rest = u->n % p->span;
  *n_in = u->n - whole * left_out_of_span(g, p->span, p->step) - left_out_of_span(g, rest, p->step);
  return whole * groups_of_span(g, p->span, p->step) + groups_of_span(g, rest, p->step);
}

/* ---- members ------------------------------------------------------------------------------------------------------------- */

/* Window number i of those of a unit (of one part) that begin with piece `from`. */
static int64_t window_at(const sn_groups *g, int64_t from, int64_t end, int64_t i) {
  int64_t low = from, high = end - 1;
  while (low < high) {
    const int64_t middle = high - (high - low) / 2;
    if (g->pieces[middle].before <= i) low = middle;
    else high = middle - 1;
  }
  return g->pieces[low].first + i - g->pieces[low].before;
}

static uint64_t keyed(const sn_random *random, uint64_t part) {
  sn_random own = sn_random_fork(random, part);
  return sn_random_u64(&own);
}

/* Numbers of the members of group j among n windows: (group) [out]; returns how many. */
static int64_t members_of(const sn_groups *g, uint64_t key, uint64_t epoch, int64_t n, int64_t j, int64_t *members) {
  const int64_t whole = n / g->group, rest = n % g->group;
  int64_t first = j * g->group, count = g->group;
  if (!g->adjacent) {
    if (j == whole) count = rest;
  } else {
    /* The rest stands before whole group number `at`: as a group of its own, or, where it is one window, left out. */
    sn_random random = sn_random_at(key, SN_PURPOSE_POSITIVE, epoch, 0);
    const int64_t at = (int64_t)sn_random_below(&random, (uint64_t)whole + 1);
    if (rest >= 2 && j == at) count = rest;
    else if (rest >= 2 && j > at) first = (j - 1) * g->group + rest;
    else if (rest == 1 && j >= at) first++;
  }
  for (int64_t m = 0; m < count; m++)
    members[m] = g->adjacent ? first + m
                             : (int64_t)sn_bijection(key, SN_PURPOSE_POSITIVE, epoch, (uint64_t)n, (uint64_t)(first + m));
  return count;
}

/* Group k of a unit whose windows follow a grid: its span, its class in the span, its number in the class. */
static int64_t spaced_members(const sn_groups *g, const unit *u, const sn_random *random, uint64_t epoch, int64_t k,
                              int64_t *windows) {
  const piece *p = &g->pieces[u->first_piece];
  const int64_t per_span = groups_of_span(g, p->span, p->step), whole = u->n / p->span;
  const int64_t span = per_span > 0 && k / per_span < whole ? k / per_span : whole;
  const int64_t b = span < whole ? p->span : u->n % p->span;
  k -= span * per_span;
  const int64_t n_long = b % p->step, longer = groups_of(g, b / p->step + 1), shorter = groups_of(g, b / p->step);
  const bool in_long = k < n_long * longer;
  const int64_t class = in_long ? k / longer : n_long + (k - n_long * longer) / shorter;
  const int64_t j = in_long ? k % longer : (k - n_long * longer) % shorter;
  const int64_t count = members_of(g, keyed(random, (uint64_t)(span * p->step + class)), epoch,
                                   b / p->step + (in_long ? 1 : 0), j, windows);
  for (int64_t m = 0; m < count; m++) windows[m] = p->first + span * p->span + class + windows[m] * p->step;
  return count;
}

static int64_t partner_members(const sn_groups *g, const unit *u, const sn_random *random, uint64_t epoch, int64_t k,
                               int64_t *windows) {
  int64_t count = 0, n;
  for (int64_t i = u->first_piece, end; i < u->first_piece + u->n_pieces; i = end) {
    end = pieces_of_part(g, u, i, &n);
    if (k >= n) continue;
    const uint64_t key = keyed(random, (uint64_t)g->pieces[i].part);
    const int64_t at = g->adjacent ? k : (int64_t)sn_bijection(key, SN_PURPOSE_POSITIVE, epoch, (uint64_t)n, (uint64_t)k);
    windows[count++] = window_at(g, i, end, at);
  }
  return count;
}

int64_t sn_groups_at(const sn_groups *g, uint64_t seed, int64_t number, int64_t *windows, uint64_t *epoch) {
  const int64_t all = g->report.n_groups;
  *epoch = (uint64_t)(number / all);
  const int64_t k = (int64_t)sn_bijection(seed ^ g->order_key, SN_PURPOSE_ORDER, *epoch, (uint64_t)all, (uint64_t)(number % all));
  int64_t low = 0, high = g->n_units - 1;
  while (low < high) {
    const int64_t middle = high - (high - low) / 2;
    if (g->units[middle].groups_before <= k) low = middle;
    else high = middle - 1;
  }
  const unit *u = &g->units[low];
  const piece *p = &g->pieces[u->first_piece];
  const sn_random whole = sn_random_at(seed, SN_PURPOSE_POSITIVE, *epoch, p->key),
                  random = sn_random_fork(&whole, (uint64_t)p->number);
  if (g->partners) return partner_members(g, u, &random, *epoch, k - u->groups_before, windows);
  if (p->step > 1 || p->span < u->n) return spaced_members(g, u, &random, *epoch, k - u->groups_before, windows);
  const int64_t count = members_of(g, keyed(&random, 0), *epoch, u->n, k - u->groups_before, windows);
  for (int64_t m = 0; m < count; m++) windows[m] = window_at(g, u->first_piece, u->first_piece + u->n_pieces, windows[m]);
  return count;
}

sn_groups_report sn_groups_get_report(const sn_groups *g) { return g->report; }
int64_t sn_groups_most(const sn_groups *g) { return g->group; }

/* ---- making ---------------------------------------------------------------------------------------------------------------- */

static bool is_timed(const sn_group_options *o) { return o->min_gap_s > 0 || o->max_lag_s > 0; }
/* Partners at one time are found by their order alone. */
static bool is_spaced(const sn_group_options *o) { return (o->sampling.adjacent && !o->sampling.partners) || is_timed(o); }

static sn_status check(const sn_source *source, const sn_group_options *o, sn_error *err) {
  const sn_sampling *s = &o->sampling;
  if (source->vtable->stretch == NULL)
    return sn_fail(err, SN_E_UNSUPPORTED, "source %s does not know whose its windows are: they cannot come in groups",
                   source->vtable->name);
  if (s->by == SN_GROUP_NONE)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "by", "groups of windows: of one recording, or of one subject?");
  if (!s->partners && (s->group < 2 || s->group > SN_MOST_GROUP))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "group", "groups of %" PRId64 " windows; expected 2 .. %d", s->group,
                      SN_MOST_GROUP);
  if (!(o->min_gap_s >= 0) || !(o->max_lag_s >= 0) || !isfinite(o->min_gap_s) || !isfinite(o->max_lag_s))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "sampler.min_gap", "groups: a gap of %g s, a lag of %g s", o->min_gap_s,
                      o->max_lag_s);
  if (s->partners && (source->n_parts < 2 || s->by != SN_GROUP_SUBJECT || is_timed(o)))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "partners", "partners are windows of one subject in different sources: that takes "
                      "several sources, by subject, without sampler.min_gap and sampler.max_lag");
  if (s->by == SN_GROUP_SUBJECT && !s->adjacent && is_spaced(o))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, o->min_gap_s > 0 ? "sampler.min_gap" : "sampler.max_lag",
                      "sampler.min_gap and sampler.max_lag are times within one recording: take positives by recording, or "
                      "adjacent ones");
  return SN_OK;
}

/* How members of a piece stand on its grid. */
static sn_status space(const sn_group_options *o, const sn_source_stretch *s, piece *p, sn_error *err) {
  p->step = 1;
  p->span = INT64_MAX;
  if (!is_spaced(o)) return SN_OK;
  p->span = s->n;
  if (s->stride_s <= 0) return SN_OK; /* a window by itself */
  const double apart = o->sampling.adjacent || o->min_gap_s > 0 ? (s->window_s + o->min_gap_s) / s->stride_s : 0;
  if (apart > 1) p->step = apart > 1e15 ? (int64_t)1e15 : (int64_t)ceil(apart - 1e-9);
  if (o->max_lag_s <= 0) return SN_OK;
  const int64_t reach = (int64_t)floor(fmin(o->max_lag_s / s->stride_s, 1e15) + 1e-9);
  const int64_t needed = o->sampling.adjacent ? (o->sampling.group - 1) * p->step : p->step;
  if (reach < needed)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "sampler.max_lag",
                      "sampler.max_lag %g s: windows of %g s every %g s with gaps of %g s lie %g s apart at the least",
                      o->max_lag_s, s->window_s, s->stride_s, o->min_gap_s, (double)needed * s->stride_s);
  if (!o->sampling.adjacent && reach + 1 < p->span) p->span = reach + 1;
  return SN_OK;
}

static sn_status add_piece(sn_groups *g, const sn_source *source, int64_t part, const sn_group_options *o,
                           const sn_source_stretch *s, int64_t number, sn_error *err) {
  const bool by_subject = o->sampling.by == SN_GROUP_SUBJECT;
  piece p = {.key = s->recording_key, .part = (int32_t)part, .first = s->first, .n = s->n};
  if (s->n < 1) return SN_OK;
  if (by_subject && s->subject_id == 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.subject",
                      "%s: whose recording it is, is not known: positives by subject need that of every recording (data.subject); "
                      "positives by recording do not", source->vtable->describe(source, s->first));
  if (by_subject && !is_spaced(o)) p.key = s->subject_id;
  if (is_spaced(o)) p.number = number;
  SN_TRY(space(o, s, &p, err));
  SN_TRY(sn_grow(&g->pieces, &g->pieces_capacity, g->n_pieces + 1, sizeof *g->pieces, "groups", err));
  g->pieces[g->n_pieces++] = p;
  return SN_OK;
}

/* Those of one part, or of all. */
static sn_status collect(sn_groups *g, const sn_source *source, int64_t part, const sn_group_options *o, sn_error *err) {
  uint64_t before = 0;
  int64_t number = 0, k = 0;
  for (int64_t i = 0; i < source->n_stretches; i++) {
    sn_source_stretch s;
    source->vtable->stretch(source, i, &s);
    while (k + 1 < source->n_parts && s.first >= source->parts[k + 1].first) k++;
    number = i > 0 && s.recording_key == before ? number + 1 : 0;
    before = s.recording_key;
    if (part >= 0 && k != part) continue;
    SN_TRY(add_piece(g, source, source->n_parts > 0 ? k : 0, o, &s, number, err));
  }
  return SN_OK;
}

static int compare_pieces(const void *a, const void *b) {
  const piece *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->number != y->number) return x->number < y->number ? -1 : 1;
  if (x->part != y->part) return x->part < y->part ? -1 : 1;
  return (x->first > y->first) - (x->first < y->first);
}

/* Sorted pieces into units; units without a group are counted and dropped. */
static sn_status make_units(sn_groups *g, sn_error *err) {
  SN_TRY(sn_alloc(&g->units, g->n_pieces, sizeof *g->units, "groups", err));
  for (int64_t i = 0, end; i < g->n_pieces; i = end) {
    unit u = {.first_piece = i, .groups_before = g->report.n_groups};
    int64_t before = 0, n_in = 0;
    for (end = i; end < g->n_pieces && g->pieces[end].key == g->pieces[i].key && g->pieces[end].number == g->pieces[i].number; end++) {
      piece *p = &g->pieces[end];
      if (g->partners && end > i && p[-1].part != p->part) before = 0;
      p->before = before;
      before += p->n;
      u.n += p->n;
      u.n_pieces++;
    }
    const int64_t n = count_unit(g, &u, &n_in);
    g->report.n_windows += n > 0 ? n_in : 0;
    g->report.n_left_out += n > 0 ? u.n - n_in : u.n;
    g->report.n_groups += n;
    g->report.n_alone += n == 0;
    if (n > 0) g->units[g->n_units++] = u;
  }
  g->report.n_units = g->n_units;
  return SN_OK;
}

sn_status sn_groups_create(const sn_source *source, int64_t part, const sn_group_options *o, sn_groups **out, sn_error *err) {
  sn_groups *g = NULL;
  sn_status status;
  SN_TRY(check(source, o, err));
  SN_TRY(sn_alloc(&g, 1, sizeof *g, "groups", err));
  g->group = o->sampling.partners ? source->n_parts : o->sampling.group;
  g->adjacent = o->sampling.adjacent;
  g->partners = o->sampling.partners;
  g->order_key = part >= 0 ? source->parts[part].key : 0;
  SN_TRY_GOTO(collect(g, source, part, o, err), fail);
  qsort(g->pieces, (size_t)g->n_pieces, sizeof *g->pieces, compare_pieces);
  SN_TRY_GOTO(make_units(g, err), fail);
  if (g->report.n_groups == 0) {
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "group",
                        "%s%sno two windows can come together: %" PRId64 " windows, no %s with two%s",
                        part >= 0 ? source->parts[part].name : "", part >= 0 ? ": " : "", g->report.n_left_out,
                        o->sampling.by == SN_GROUP_SUBJECT ? "subject" : "recording",
                        o->sampling.partners ? " sources" : "; shorter windows (data.window, data.stride) give more");
    goto fail;
  }
  *out = g;
  return SN_OK;
fail:
  sn_groups_destroy(g);
  return status;
}

void sn_groups_destroy(sn_groups *g) {
  if (g == NULL) return;
  sn_free(g->pieces);
  sn_free(g->units);
  sn_free(g);
}
