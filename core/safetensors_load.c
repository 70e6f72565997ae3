/* Strict load by name: what the file has against what the model wants, decided and read completely before the first
 * byte of the model changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/safetensors.h"

typedef struct named_index {
  const char *name;
  int64_t index;
} named_index;

typedef struct match {
  int64_t source, target;
  int64_t offset; /* in the staging buffer */
} match;

typedef struct loading {
  const char *path, *prefix;
  sn_safetensors *file;
  const sn_named_tensor *targets;
  int64_t n;
  named_index *by_name; /* (n) targets sorted by name */
  bool *filled;         /* (n) the file has a tensor of this name */
  match *matches;
  char *staging;
  char why_wrong[256];
} loading;

static int compare_names(const void *a, const void *b) {
  return strcmp(((const named_index *)a)->name, ((const named_index *)b)->name);
}

static bool is_floating(sn_dtype dtype) { return dtype == SN_F32 || dtype == SN_F64 || dtype == SN_BF16; }

static void remember(char first[128], const char *name) {
  if (first[0] == '\0') snprintf(first, 128, "%s", name);
}

static sn_status sort_targets(loading *l, sn_error *err) {
  for (int64_t i = 0; i < l->n; i++) {
    l->by_name[i] = (named_index){l->targets[i].name, i};
    if (l->targets[i].tensor.data == NULL && sn_tensor_count(&l->targets[i].tensor) > 0) {
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, l->targets[i].name, "loading %s: the tensor \"%s\" has no memory",
                        l->path, l->targets[i].name);
    }
  }
  if (l->n > 0) qsort(l->by_name, (size_t)l->n, sizeof *l->by_name, compare_names);
  for (int64_t i = 1; i < l->n; i++) {
    if (strcmp(l->by_name[i - 1].name, l->by_name[i].name) != 0) continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, l->by_name[i].name,
                      "loading %s: the model has two tensors named \"%s\"", l->path, l->by_name[i].name);
  }
  return SN_OK;
}

static void shape_text(const sn_tensor *tensor, char text[112]) {
  int n = snprintf(text, 112, "%s (", sn_dtype_name(tensor->dtype));
  for (int d = 0; d < tensor->n_dims; d++) {
    n += snprintf(text + n, (size_t)(112 - n), "%s%lld", d > 0 ? ", " : "", (long long)tensor->shape[d]);
  }
  snprintf(text + n, (size_t)(112 - n), ")");
}

static bool loadable(const sn_tensor *from, const sn_tensor *to) {
  if (from->n_dims != to->n_dims) return false;
  for (int d = 0; d < to->n_dims; d++) {
    if (from->shape[d] != to->shape[d]) return false;
  }
  return from->dtype == to->dtype || (is_floating(from->dtype) && is_floating(to->dtype));
}

/* Fills report, matches and filled. */
static void compare_with_file(loading *l, sn_load_report *report) {
  size_t n_prefix = strlen(l->prefix);
  for (int64_t i = 0; i < sn_safetensors_count(l->file); i++) {
    sn_named_tensor source = sn_safetensors_entry(l->file, i);
    named_index wanted = {source.name + n_prefix, 0}, *found = NULL;
    if (strncmp(source.name, l->prefix, n_prefix) == 0 && l->n > 0) {
      found = bsearch(&wanted, l->by_name, (size_t)l->n, sizeof *found, compare_names);
    }
    if (found == NULL) {
      report->unexpected++;
      remember(report->first_unexpected, source.name);
      continue;
    }
    const sn_tensor *target = &l->targets[found->index].tensor;
    l->filled[found->index] = true;
    if (!loadable(&source.tensor, target)) {
      report->wrong_shape++;
      remember(report->first_wrong, found->name);
      char has[112], wants[112];
      shape_text(&source.tensor, has);
      shape_text(target, wants);
      if (l->why_wrong[0] == '\0') {
        snprintf(l->why_wrong, sizeof l->why_wrong, "the file has %s, expected %s", has, wants);
      }
      continue;
    }
    l->matches[report->matched++] = (match){i, found->index, 0};
  }
  for (int64_t i = 0; i < l->n; i++) {
    if (l->filled[i]) continue;
    report->missing++;
    remember(report->first_missing, l->targets[i].name);
  }
}

/* A prefix that all names of the file share ("module.") and without which one of them is wanted, for the hint. */
static bool shared_prefix(const loading *l, char prefix[64]) {
  if (sn_safetensors_count(l->file) == 0 || l->n == 0) return false;
  const char *first = sn_safetensors_entry(l->file, 0).name;
  for (const char *dot = strchr(first, '.'); dot != NULL && dot - first < 62; dot = strchr(dot + 1, '.')) {
    size_t n = (size_t)(dot - first) + 1;
    bool shared = true, wanted = false;
    for (int64_t i = 0; i < sn_safetensors_count(l->file); i++) {
      named_index name = {sn_safetensors_entry(l->file, i).name, 0};
      shared = shared && strncmp(name.name, first, n) == 0;
      if (!shared) break;
      name.name += n;
      wanted = wanted || bsearch(&name, l->by_name, (size_t)l->n, sizeof name, compare_names) != NULL;
    }
    if (!shared) return false;
    if (wanted) {
      snprintf(prefix, 64, "%.*s", (int)n, first);
      return true;
    }
  }
  return false;
}

static sn_status judge(const loading *l, bool partial, const sn_load_report *r, sn_error *err) {
  if (r->matched > 0 && (partial || r->missing + r->unexpected + r->wrong_shape == 0)) return SN_OK;
  const char *field = r->wrong_shape > 0 ? r->first_wrong : r->missing > 0 ? r->first_missing : r->first_unexpected;
  char hint[128] = "", prefix[64], details[400] = "";
  if (l->prefix[0] == '\0' && shared_prefix(l, prefix)) {
    snprintf(hint, sizeof hint, "; all names of the file begin with \"%s\": give that as the prefix", prefix);
  }
  if (r->wrong_shape > 0) snprintf(details, sizeof details, "; \"%.60s\": %s", r->first_wrong, l->why_wrong);
  else if (r->missing > 0 && r->unexpected > 0)
    snprintf(details, sizeof details, "; missing \"%.80s\", unexpected \"%.80s\"", r->first_missing,
             r->first_unexpected);
  else if (r->missing > 0) snprintf(details, sizeof details, "; missing \"%.80s\"", r->first_missing);
  else if (r->unexpected > 0) snprintf(details, sizeof details, "; unexpected \"%.80s\"", r->first_unexpected);
  return sn_fail_at(err, SN_E_STATE, -1, -1, field,
                    "%s: weights do not fit: %lld matched, %lld missing, %lld unexpected, %lld of another shape%s%s",
                    l->path, (long long)r->matched, (long long)r->missing, (long long)r->unexpected,
                    (long long)r->wrong_shape, details, hint);
}

/* Reads every matched tensor into the staging buffer, in the file's order. */
static sn_status stage(loading *l, int64_t n_matches, sn_error *err) {
  int64_t total = 0;
  for (int64_t m = 0; m < n_matches; m++) {
    sn_tensor source = sn_safetensors_entry(l->file, l->matches[m].source).tensor;
    l->matches[m].offset = total;
    total += (sn_tensor_bytes(&source) + 63) / 64 * 64; /* all within the file's size; aligned for every dtype */
  }
  SN_TRY(sn_alloc_aligned(&l->staging, total > 0 ? total : 64, "weights", err));
  for (int64_t m = 0; m < n_matches; m++) {
    SN_TRY(sn_safetensors_read(l->file, l->matches[m].source, l->staging + l->matches[m].offset, err));
  }
  return SN_OK;
}

static void deliver(const loading *l, int64_t n_matches) {
  for (int64_t m = 0; m < n_matches; m++) {
    sn_tensor source = sn_safetensors_entry(l->file, l->matches[m].source).tensor;
    const sn_tensor *target = &l->targets[l->matches[m].target].tensor;
    source.data = l->staging + l->matches[m].offset;
    int64_t n = sn_tensor_count(target);
    if (source.dtype == target->dtype) {
      if (n > 0) memcpy(target->data, source.data, (size_t)sn_tensor_bytes(target));
      continue;
    }
    for (int64_t i = 0; i < n; i++) sn_tensor_set(target, i, sn_tensor_get(&source, i));
  }
}

sn_status sn_safetensors_load(const char *path, const char *prefix, bool partial, const sn_named_tensor *tensors,
                              int64_t n, sn_load_report *report, sn_error *err) {
  sn_load_report own;
  if (report == NULL) report = &own;
  *report = (sn_load_report){.missing = n};
  loading l = {.path = path, .prefix = prefix, .targets = tensors, .n = n};
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_safetensors_open(path, &l.file, err), done);
  SN_TRY_GOTO(sn_alloc(&l.by_name, n, (int64_t)sizeof *l.by_name, "tensor names", err), done);
  SN_TRY_GOTO(sn_alloc(&l.filled, n, (int64_t)sizeof *l.filled, "tensor names", err), done);
  SN_TRY_GOTO(sn_alloc(&l.matches, sn_safetensors_count(l.file), (int64_t)sizeof *l.matches, "tensor names", err),
              done);
  SN_TRY_GOTO(sort_targets(&l, err), done);
  report->missing = 0;
  compare_with_file(&l, report);
  SN_TRY_GOTO(judge(&l, partial, report, err), done);
  SN_TRY_GOTO(stage(&l, report->matched, err), done);
  deliver(&l, report->matched);
done:
  sn_safetensors_close(l.file);
  sn_free(l.by_name);
  sn_free(l.filled);
  sn_free(l.matches);
  sn_free(l.staging);
  return status;
}
