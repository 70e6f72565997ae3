/* needs: full */
/* The file of a suite: what may stand in it, and the settings of a run from its layers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/suite_private.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "engine/phases.h"
#include "engine/presets.h"
#include "engine/pretrain.h"
#include "engine/run.h"

#define BUDGET_TOLERANCE 0.05 /* steps are whole, and packs of runs differ in size */

const char *suite_protocol_name(suite_protocol protocol) {
  return (const char *const[SUITE_PROTOCOLS]){"linear", "knn", "finetune"}[protocol];
}

/* ---- values ---- */

static sn_status check_keys(const suite_spec *spec, const sn_document *node, const char *what, const char *const *known,
                            int64_t n, sn_error *err) {
  if (sn_document_kind_of(node) != SN_DOCUMENT_MAPPING)
    return sn_document_fail(node, spec->path, err, "%s must be a mapping of keys", what);
  for (int64_t i = 0; i < sn_document_length(node); i++) {
    const sn_document *child = sn_document_at(node, i);
    const char *key = sn_document_key(child), *near = sn_nearest_name(key, known, n);
    bool found = false;
    for (int64_t k = 0; k < n; k++) found = found || strcmp(known[k], key) == 0;
    if (!found)
      return sn_document_fail(child, spec->path, err, "'%s' is no key of %s%s%s%s", key, what, near ? ", did you mean '" : "",
                              near ? near : "", near ? "'?" : "");
  }
  return SN_OK;
}

static sn_status get_text(const suite_spec *spec, const sn_document *mapping, const char *key, const char **text, sn_error *err) {
  const sn_document *node = sn_document_get(mapping, key);
  if (node == NULL) return SN_OK;
  *text = sn_document_text(node);
  if (*text == NULL || (*text)[0] == '\0') return sn_document_fail(node, spec->path, err, "'%s' must be a text", key);
  return SN_OK;
}

static sn_status node_i64(const suite_spec *spec, const sn_document *node, const char *what, int64_t least, int64_t most,
                          int64_t *value, sn_error *err) {
  const char *text = sn_document_text(node);
  double real;
  bool whole = text != NULL && sn_parse_i64(text, value);
  if (text != NULL && !whole && sn_parse_f64(text, false, &real) && real == floor(real) && fabs(real) < 9e15) { /* 2e6 */
    *value = (int64_t)real;
    whole = true;
  }
  if (!whole || *value < least || *value > most)
    return sn_document_fail(node, spec->path, err, "'%s' must be a whole number from %" PRId64 " to %" PRId64 "%s%s", what, least,
                            most, text != NULL ? ", found " : "", text != NULL ? text : "");
  return SN_OK;
}

static sn_status get_i64(const suite_spec *spec, const sn_document *mapping, const char *key, int64_t least, int64_t most,
                         int64_t *value, sn_error *err) {
  const sn_document *node = sn_document_get(mapping, key);
  return node == NULL ? SN_OK : node_i64(spec, node, key, least, most, value, err);
}

static sn_status get_f64(const suite_spec *spec, const sn_document *mapping, const char *key, double *value, sn_error *err) {
  const sn_document *node = sn_document_get(mapping, key);
  const char *text = sn_document_text(node);
  double factor = 1;
  char number[64];
  if (node == NULL) return SN_OK;
  /* "10 s" */
  if (text != NULL && strlen(text) < sizeof number) {
    snprintf(number, sizeof number, "%s", text);
    char *blank = strpbrk(number, " mhs");
    if (blank != NULL) {
      char *unit = sn_trim(blank);
      if (!sn_unit_convert(1, unit, "s", &factor)) text = NULL;
      *blank = '\0';
      if (text != NULL) text = number;
    }
  }
  if (text == NULL || !sn_parse_f64(text, false, value) || !(*value * factor > 0))
    return sn_document_fail(node, spec->path, err, "'%s' must be a time above 0, such as 10 or \"10 s\"", key);
  *value *= factor;
  return SN_OK;
}

static sn_status get_bool(const suite_spec *spec, const sn_document *mapping, const char *key, bool *value, sn_error *err) {
  const sn_document *node = sn_document_get(mapping, key);
  const char *text = sn_document_text(node);
  if (node == NULL) return SN_OK;
  if (text != NULL && (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0)) *value = true;
  else if (text != NULL && (strcmp(text, "false") == 0 || strcmp(text, "no") == 0)) *value = false;
  else return sn_document_fail(node, spec->path, err, "'%s' must be true or false", key);
  return SN_OK;
}

/* A name becomes a folder's. */
static sn_status get_name(const suite_spec *spec, const sn_document *node, const char *what, const char **name, sn_error *err) {
  static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  static const char *const TAKEN[] = {"random", "scratch", "raw", "majority"};
  *name = NULL;
  if (sn_document_kind_of(node) != SN_DOCUMENT_MAPPING)
    return sn_document_fail(node, spec->path, err, "each element of %s must be a mapping of keys", what);
  SN_TRY(get_text(spec, node, "name", name, err));
  if (*name == NULL) return sn_document_fail(node, spec->path, err, "an element of %s without 'name'", what);
  const sn_document *at = sn_document_get(node, "name");
  if (strspn(*name, LETTERS) != strlen(*name) || (*name)[0] == '.' || strlen(*name) > 60)
    return sn_document_fail(at, spec->path, err, "name '%s': up to 60 letters, digits, '_', '-' and '.', not beginning with '.'",
                            *name);
  for (size_t i = 0; i < sizeof TAKEN / sizeof TAKEN[0]; i++)
    if (strcmp(*name, TAKEN[i]) == 0)
      return sn_document_fail(at, spec->path, err, "the name '%s' is that of a baseline", *name);
  return SN_OK;
}

static sn_status twice(const suite_spec *spec, const sn_document *node, const char *name, sn_error *err) {
  return sn_document_fail(sn_document_get(node, "name"), spec->path, err, "the name '%s' is given twice", name);
}

/* The elements of a list that must be there. */
static sn_status get_list(const suite_spec *spec, const sn_document *mapping, const char *key, const sn_document **list,
                          sn_error *err) {
  *list = sn_document_get(mapping, key);
  if (*list == NULL) return sn_document_fail(mapping, spec->path, err, "'%s' is missing", key);
  if (sn_document_kind_of(*list) != SN_DOCUMENT_SEQUENCE || sn_document_length(*list) == 0)
    return sn_document_fail(*list, spec->path, err, "'%s' must be a list with at least one element", key);
  return SN_OK;
}

/* A list of texts, or one text cut at commas as on the command line is not accepted: an element each. n 0: absent. */
static sn_status get_texts(const suite_spec *spec, const sn_document *mapping, const char *key, const char ***texts, int64_t *n,
                           sn_error *err) {
  const sn_document *node = sn_document_get(mapping, key);
  *n = 0;
  if (node == NULL) return SN_OK;
  const bool one = sn_document_kind_of(node) == SN_DOCUMENT_SCALAR;
  const int64_t count = one ? 1 : sn_document_length(node);
  if (count == 0 || sn_document_kind_of(node) == SN_DOCUMENT_MAPPING)
    return sn_document_fail(node, spec->path, err, "'%s' must be a list", key);
  SN_TRY(sn_alloc(texts, count, sizeof **texts, "suite", err));
  for (int64_t i = 0; i < count; i++) {
    const sn_document *item = one ? node : sn_document_at(node, i);
    (*texts)[i] = sn_document_text(item);
    if ((*texts)[i] == NULL) return sn_document_fail(item, spec->path, err, "an element of '%s' must be a single value", key);
  }
  *n = count;
  return SN_OK;
}

static sn_status get_seeds(const suite_spec *spec, const sn_document *mapping, int64_t **seeds, int64_t *n, sn_error *err) {
  const sn_document *node = sn_document_get(mapping, "seeds");
  if (node == NULL) return SN_OK;
  const bool one = sn_document_kind_of(node) == SN_DOCUMENT_SCALAR;
  const int64_t count = one ? 1 : sn_document_length(node);
  if (count < 1 || count > 64 || sn_document_kind_of(node) == SN_DOCUMENT_MAPPING)
    return sn_document_fail(node, spec->path, err, "'seeds' must be a list of 1 to 64 whole numbers");
  SN_TRY(sn_alloc(seeds, count, sizeof **seeds, "suite", err));
  *n = count;
  for (int64_t i = 0; i < count; i++) {
    const sn_document *item = one ? node : sn_document_at(node, i);
    SN_TRY(node_i64(spec, item, "seeds", 0, (int64_t)9e15, &(*seeds)[i], err));
    for (int64_t j = 0; j < i; j++)
      if ((*seeds)[j] == (*seeds)[i]) return sn_document_fail(item, spec->path, err, "seed %" PRId64 " is given twice", (*seeds)[i]);
  }
  return SN_OK;
}

sn_status suite_path(const suite_spec *spec, const char *path, char **out, sn_error *err) {
  return spec->base != NULL ? sn_path_join(spec->base, path, out, err) : sn_strdup(out, path, "path", err);
}

/* ---- tasks ---- */

static sn_status read_protocols(const suite_spec *spec, suite_task *task, sn_error *err) {
  const sn_document *node = sn_document_get(task->node, "protocols");
  const char **names = NULL;
  int64_t n = 0;
  sn_status status = get_texts(spec, task->node, "protocols", &names, &n, err);
  if (node == NULL) task->protocols[SUITE_LINEAR] = true;
  for (int64_t i = 0; i < n && status == SN_OK; i++) {
    bool known = false;
    for (int p = 0; p < SUITE_PROTOCOLS; p++) {
      if (strcmp(names[i], suite_protocol_name((suite_protocol)p)) != 0) continue;
      known = true;
      if (task->protocols[p]) status = sn_document_fail(node, spec->path, err, "protocol '%s' is given twice", names[i]);
      task->protocols[p] = true;
    }
    if (!known) status = sn_document_fail(node, spec->path, err, "protocol '%s': linear, knn or finetune", names[i]);
  }
  sn_free(names);
  return status;
}

static sn_status read_pools(const suite_spec *spec, suite_task *task, sn_error *err) {
  const sn_document *node = sn_document_get(task->node, "pools");
  const char **names = NULL;
  int64_t n = 0;
  sn_status status = get_texts(spec, task->node, "pools", &names, &n, err);
  if (status == SN_OK && n > SN_PROBE_POOLS) status = sn_document_fail(node, spec->path, err, "more than %d pools", SN_PROBE_POOLS);
  for (int64_t i = 0; i < n && status == SN_OK; i++) {
    sn_error local;
    if (sn_pool_parse(names[i], &task->probe.pools[i], &local) != SN_OK)
      status = sn_document_fail(node, spec->path, err, "%s", local.message);
    for (int64_t j = 0; j < i && status == SN_OK; j++)
      if (task->probe.pools[j] == task->probe.pools[i])
        status = sn_document_fail(node, spec->path, err, "pool '%s' is given twice", names[i]);
  }
  if (n > 0) task->probe.n_pools = n;
  sn_free(names);
  return status;
}

/* `finetune: {steps: 100}` is the setting finetune.steps. */
static sn_status read_finetune(const suite_spec *spec, suite_task *task, sn_error *err) {
  const sn_document *node = sn_document_get(task->node, "finetune");
  if (node == NULL) return SN_OK;
  if (sn_document_kind_of(node) != SN_DOCUMENT_MAPPING)
    return sn_document_fail(node, spec->path, err, "'finetune' must be a mapping of settings finetune.*");
  if (!task->protocols[SUITE_FINETUNE])
    return sn_document_fail(node, spec->path, err, "settings of fine-tuning, and 'protocols' does not name finetune");
  SN_TRY(sn_alloc(&task->set, sn_document_length(node), sizeof *task->set, "suite", err));
  for (int64_t i = 0; i < sn_document_length(node); i++) {
    const sn_document *child = sn_document_at(node, i);
    const char *text = sn_document_text(child);
    sn_string pair = {0};
    if (text == NULL) return sn_document_fail(child, spec->path, err, "'%s' must be a single value", sn_document_key(child));
    SN_TRY(sn_string_printf(&pair, err, "finetune.%s=%s", sn_document_key(child), text));
    task->set[task->n_set++] = pair.data;
  }
  return SN_OK;
}

static sn_status read_task_kind(const suite_spec *spec, suite_task *task, sn_error *err) {
  static const char *const NAMES[] = {"auto", "multiclass", "multilabel", "regression"};
  static const sn_label_task TASKS[] = {SN_LABEL_AUTO, SN_LABEL_CLASS, SN_LABEL_MULTI, SN_LABEL_VALUE};
  const char *name = NULL;
  SN_TRY(get_text(spec, task->node, "task", &name, err));
  for (int i = 0; i < 4 && name != NULL; i++)
    if (strcmp(NAMES[i], name) == 0) {
      task->probe.task = TASKS[i];
      return SN_OK;
    }
  return name == NULL ? SN_OK : sn_document_fail(sn_document_get(task->node, "task"), spec->path, err,
                                                 "task '%s': auto, multiclass, multilabel or regression", name);
}

static sn_status read_task(const suite_spec *spec, const sn_document *node, suite_task *task, sn_error *err) {
  static const char *const KEYS[] = {"name", "target", "task", "data", "labels", "key", "subject", "split", "exclude",
                                     "classes", "folds", "window", "context", "pools", "metric", "unweighted", "k",
                                     "protocols", "finetune", "transductive", "ema"};
  sn_probe_options *p = &task->probe;
  const char *labels = NULL, *data = NULL;
  task->node = node;
  *p = sn_probe_defaults();
  SN_TRY(get_name(spec, node, "'tasks'", &task->name, err));
  SN_TRY(check_keys(spec, node, "a task", KEYS, sizeof KEYS / sizeof KEYS[0], err));
  SN_TRY(get_text(spec, node, "target", &p->target, err));
  if (p->target == NULL) return sn_document_fail(node, spec->path, err, "task '%s' has no 'target'", task->name);
  SN_TRY(get_text(spec, node, "data", &data, err));
  SN_TRY(get_text(spec, node, "labels", &labels, err));
  if (data != NULL) SN_TRY(suite_path(spec, data, &task->data, err));
  if (labels != NULL) SN_TRY(suite_path(spec, labels, &task->labels, err));
  p->data = task->data;
  p->labels = task->labels;
  SN_TRY(get_text(spec, node, "key", &p->key, err));
  SN_TRY(get_text(spec, node, "subject", &p->subject, err));
  SN_TRY(get_text(spec, node, "split", &p->split, err));
  SN_TRY(get_text(spec, node, "classes", &p->classes, err));
  SN_TRY(get_text(spec, node, "metric", &p->metric, err));
  SN_TRY(get_texts(spec, node, "exclude", &task->exclude, &p->n_exclude, err));
  p->exclude = task->exclude;
  SN_TRY(get_i64(spec, node, "folds", 2, 1000, &p->folds, err));
  p->folds_given = sn_document_get(node, "folds") != NULL;
  SN_TRY(get_i64(spec, node, "k", 1, 1000000, &p->k, err));
  SN_TRY(get_f64(spec, node, "window", &p->window_s, err));
  SN_TRY(get_f64(spec, node, "context", &p->context_s, err));
  SN_TRY(get_bool(spec, node, "unweighted", &p->unweighted, err));
  SN_TRY(get_bool(spec, node, "transductive", &p->transductive, err));
  SN_TRY(get_bool(spec, node, "ema", &p->use_ema, err));
  SN_TRY(read_task_kind(spec, task, err));
  SN_TRY(read_protocols(spec, task, err));
  SN_TRY(read_pools(spec, task, err));
  SN_TRY(read_finetune(spec, task, err));
  if (sn_document_get(node, "k") != NULL && !task->protocols[SUITE_KNN])
    return sn_document_fail(sn_document_get(node, "k"), spec->path, err, "'k' is of kNN, and 'protocols' does not name knn");
  if (p->unweighted && !task->protocols[SUITE_LINEAR])
    return sn_document_fail(sn_document_get(node, "unweighted"), spec->path, err, "'unweighted' is of the linear probe, and "
                            "'protocols' does not name linear");
  p->n_seeds = spec->n_random;
  p->n_draws = spec->n_draws;
  p->seed = spec->seed;
  p->only_scores = true;
  return SN_OK;
}

static sn_status read_tasks(const suite_spec *spec, suite_set *set, sn_error *err) {
  const sn_document *list;
  SN_TRY(get_list(spec, set->node, "tasks", &list, err));
  SN_TRY(sn_alloc(&set->tasks, sn_document_length(list), sizeof *set->tasks, "suite", err));
  for (int64_t i = 0; i < sn_document_length(list); i++) {
    set->n_tasks++;
    SN_TRY(read_task(spec, sn_document_at(list, i), &set->tasks[i], err));
    for (int64_t j = 0; j < i; j++)
      if (strcmp(set->tasks[j].name, set->tasks[i].name) == 0) return twice(spec, set->tasks[i].node, set->tasks[i].name, err);
  }
  return SN_OK;
}

/* ---- sets and runs ---- */

static sn_status read_budget(const suite_spec *spec, const sn_document *mapping, suite_set *set, sn_error *err) {
  static const char *const KEYS[] = {"tokens", "rule"};
  const sn_document *node = sn_document_get(mapping, "budget");
  const char *rule = NULL;
  if (node == NULL) return SN_OK;
  SN_TRY(check_keys(spec, node, "'budget'", KEYS, 2, err));
  set->budget = node;
  set->budget_scales = false;
  if (sn_document_get(node, "tokens") == NULL) return sn_document_fail(node, spec->path, err, "'budget' without 'tokens'");
  SN_TRY(get_i64(spec, node, "tokens", 1, (int64_t)9e15, &set->budget_tokens, err));
  SN_TRY(get_text(spec, node, "rule", &rule, err));
  if (rule != NULL && strcmp(rule, "refuse") != 0 && strcmp(rule, "scale") != 0)
    return sn_document_fail(sn_document_get(node, "rule"), spec->path, err, "rule '%s': refuse or scale", rule);
  set->budget_scales = rule != NULL && strcmp(rule, "scale") == 0;
  return SN_OK;
}

/* What a set and the top level share; a set's own stands over it. */
static sn_status read_common(const suite_spec *spec, const sn_document *mapping, suite_set *set, sn_error *err) {
  if (sn_document_get(mapping, "preset") != NULL) set->preset = sn_document_get(mapping, "preset");
  if (sn_document_get(mapping, "seeds") != NULL) {
    sn_free(set->seeds);
    set->seeds = NULL;
    SN_TRY(get_seeds(spec, mapping, &set->seeds, &set->n_seeds, err));
  }
  SN_TRY(get_i64(spec, mapping, "folds", 2, 1000, &set->n_folds, err));
  return read_budget(spec, mapping, set, err);
}

static sn_status read_sets(suite_spec *spec, sn_error *err) {
  static const char *const KEYS[] = {"name", "preset", "settings", "seeds", "folds", "budget", "tasks"};
  const sn_document *list = sn_document_get(spec->root, "sets");
  if (list != NULL) SN_TRY(get_list(spec, spec->root, "sets", &list, err));
  if (list != NULL && sn_document_get(spec->root, "tasks") != NULL)
    return sn_document_fail(sn_document_get(spec->root, "tasks"), spec->path, err, "where there are 'sets', tasks stand in each of "
                            "them");
  spec->n_sets = list != NULL ? sn_document_length(list) : 1;
  SN_TRY(sn_alloc(&spec->sets, spec->n_sets, sizeof *spec->sets, "suite", err));
  for (int64_t i = 0; i < spec->n_sets; i++) {
    suite_set *set = &spec->sets[i];
    set->name = "";
    set->node = list != NULL ? sn_document_at(list, i) : spec->root;
    SN_TRY(read_common(spec, spec->root, set, err));
    if (list != NULL) {
      SN_TRY(get_name(spec, set->node, "'sets'", &set->name, err));
      SN_TRY(check_keys(spec, set->node, "a set", KEYS, sizeof KEYS / sizeof KEYS[0], err));
      SN_TRY(read_common(spec, set->node, set, err));
    }
    for (int64_t j = 0; j < i; j++)
      if (strcmp(spec->sets[j].name, set->name) == 0) return twice(spec, set->node, set->name, err);
    if (set->seeds == NULL) {
      SN_TRY(sn_alloc(&set->seeds, 1, sizeof *set->seeds, "suite", err)); /* seed 0 */
      set->n_seeds = 1;
    }
    SN_TRY(read_tasks(spec, set, err));
  }
  return SN_OK;
}

static const suite_set *find_set(const suite_spec *spec, const char *name) {
  for (int64_t i = 0; name != NULL && i < spec->n_sets; i++)
    if (spec->sets[i].name[0] != '\0' && strcmp(spec->sets[i].name, name) == 0) return &spec->sets[i];
  return NULL;
}

/* `only` and `in` name sets that exist. */
static sn_status check_set_names(const suite_spec *spec, const suite_entry *entry, sn_error *err) {
  const sn_document *only = sn_document_get(entry->node, "only"), *in = sn_document_get(entry->node, "in");
  const char **names = NULL;
  int64_t n = 0;
  sn_status status = get_texts(spec, entry->node, "only", &names, &n, err);
  for (int64_t i = 0; i < n && status == SN_OK; i++)
    if (find_set(spec, names[i]) == NULL) status = sn_document_fail(only, spec->path, err, "there is no set '%s'", names[i]);
  sn_free(names);
  if (status != SN_OK) return status;
  if (in != NULL && sn_document_kind_of(in) != SN_DOCUMENT_MAPPING)
    return sn_document_fail(in, spec->path, err, "'in' must be a mapping of sets to settings");
  for (int64_t i = 0; i < sn_document_length(in); i++)
    if (find_set(spec, sn_document_key(sn_document_at(in, i))) == NULL)
      return sn_document_fail(sn_document_at(in, i), spec->path, err, "there is no set '%s'", sn_document_key(sn_document_at(in, i)));
  return SN_OK;
}

static sn_status read_entries(suite_spec *spec, sn_error *err) {
  static const char *const KEYS[] = {"name", "preset", "settings", "seeds", "only", "in"};
  const sn_document *list;
  SN_TRY(get_list(spec, spec->root, "runs", &list, err));
  SN_TRY(sn_alloc(&spec->entries, sn_document_length(list), sizeof *spec->entries, "suite", err));
  for (int64_t i = 0; i < sn_document_length(list); i++) {
    suite_entry *entry = &spec->entries[i];
    spec->n_entries++;
    entry->node = sn_document_at(list, i);
    SN_TRY(get_name(spec, entry->node, "'runs'", &entry->name, err));
    SN_TRY(check_keys(spec, entry->node, "a run", KEYS, sizeof KEYS / sizeof KEYS[0], err));
    for (int64_t j = 0; j < i; j++)
      if (strcmp(spec->entries[j].name, entry->name) == 0) return twice(spec, entry->node, entry->name, err);
    entry->preset = sn_document_get(entry->node, "preset");
    SN_TRY(get_seeds(spec, entry->node, &entry->seeds, &entry->n_seeds, err));
    SN_TRY(check_set_names(spec, entry, err));
  }
  return SN_OK;
}

bool suite_takes_part(const suite_entry *entry, const suite_set *set) {
  const sn_document *only = sn_document_get(entry->node, "only");
  if (only == NULL) return true;
  if (sn_document_text(only) != NULL) return strcmp(sn_document_text(only), set->name) == 0;
  for (int64_t i = 0; i < sn_document_length(only); i++)
    if (strcmp(sn_document_text(sn_document_at(only, i)), set->name) == 0) return true;
  return false;
}

static sn_status read_top(suite_spec *spec, const sn_suite_options *options, sn_error *err) {
  static const char *const KEYS[] = {"out", "preset", "settings", "seeds", "folds", "budget", "reference", "draws", "seed",
                                     "random_seeds", "sets", "runs", "tasks"};
  const char *out = NULL;
  int64_t seed = 0;
  SN_TRY(check_keys(spec, spec->root, "a suite", KEYS, sizeof KEYS / sizeof KEYS[0], err));
  SN_TRY(get_text(spec, spec->root, "out", &out, err));
  if (options->out != NULL) out = options->out;
  if (out == NULL) return sn_document_fail(spec->root, spec->path, err, "no output folder: 'out', or --out DIR");
  SN_TRY(sn_strdup(&spec->out, out, "output folder", err));
  SN_TRY(get_i64(spec, spec->root, "draws", 1, 1000000, &spec->n_draws, err));
  SN_TRY(get_i64(spec, spec->root, "random_seeds", 1, 64, &spec->n_random, err));
  SN_TRY(get_i64(spec, spec->root, "seed", 0, (int64_t)9e15, &seed, err));
  spec->seed = (uint64_t)seed;
  return get_text(spec, spec->root, "reference", &spec->reference, err);
}

static sn_status resolve_base(suite_spec *spec, const char *root, sn_error *err) {
  if (root == NULL) return SN_OK;
  if (!sn_path_is_directory(root)) return sn_fail(err, SN_E_ARGUMENT, "--root %s: there is no such folder", root);
  char *path = realpath(root, NULL);
  if (path == NULL) return sn_fail(err, SN_E_IO, "--root %s: cannot be resolved", root);
  const sn_status status = sn_strdup(&spec->base, path, "root", err);
  free(path);
  return status;
}

sn_status suite_spec_load(const sn_suite_options *options, suite_spec *spec, sn_error *err) {
  *spec = (suite_spec){.path = options->path, .n_draws = 1000, .n_random = 3};
  SN_TRY(sn_document_load(options->path, &spec->root, err));
  SN_TRY(resolve_base(spec, options->root, err));
  SN_TRY(read_top(spec, options, err));
  SN_TRY(read_sets(spec, err));
  SN_TRY(read_entries(spec, err));
  for (int64_t i = 0; spec->reference != NULL && i < spec->n_entries; i++)
    if (strcmp(spec->entries[i].name, spec->reference) == 0) return SN_OK;
  return spec->reference == NULL ? SN_OK : sn_document_fail(sn_document_get(spec->root, "reference"), spec->path, err,
                                                            "there is no run '%s'", spec->reference);
}

void suite_spec_free(suite_spec *spec) {
  for (int64_t i = 0; i < spec->n_sets && spec->sets != NULL; i++) {
    suite_set *set = &spec->sets[i];
    for (int64_t k = 0; k < set->n_tasks; k++) {
      suite_task *task = &set->tasks[k];
      for (int64_t j = 0; j < task->n_set; j++) sn_free(task->set[j]);
      sn_free(task->set);
      sn_free(task->exclude);
      sn_free(task->labels);
      sn_free(task->data);
    }
    sn_free(set->tasks);
    sn_free(set->seeds);
  }
  for (int64_t i = 0; i < spec->n_entries; i++) sn_free(spec->entries[i].seeds);
  sn_free(spec->sets);
  sn_free(spec->entries);
  sn_free(spec->out);
  sn_free(spec->base);
  sn_document_destroy(spec->root);
}

/* ---- settings of a run ---- */

static sn_status apply_preset(const suite_spec *spec, const sn_document *node, sn_config *config, sn_error *err) {
  const char *name = sn_document_text(node);
  sn_error local;
  if (node == NULL) return SN_OK;
  if (name == NULL) return sn_document_fail(node, spec->path, err, "'preset' must be a name");
  return sn_preset_apply(config, name, NULL, &local) == SN_OK ? SN_OK
                                                              : sn_document_fail(node, spec->path, err, "%s", local.message);
}

static sn_status apply_settings(const suite_spec *spec, const sn_document *settings, sn_config *config, sn_error *err) {
  if (settings == NULL) return SN_OK;
  if (sn_document_kind_of(settings) != SN_DOCUMENT_MAPPING)
    return sn_document_fail(settings, spec->path, err, "'%s' must be a mapping of settings", sn_document_key(settings));
  return sn_config_load_document(config, settings, spec->path, err);
}

static sn_status apply_layers(const suite_spec *spec, const suite_set *set, const suite_entry *entry, sn_config *config,
                              sn_error *err) {
  SN_TRY(apply_preset(spec, entry->preset != NULL ? entry->preset : set->preset, config, err));
  SN_TRY(apply_settings(spec, sn_document_get(spec->root, "settings"), config, err));
  if (set->node != spec->root) SN_TRY(apply_settings(spec, sn_document_get(set->node, "settings"), config, err));
  SN_TRY(apply_settings(spec, sn_document_get(entry->node, "settings"), config, err));
  return apply_settings(spec, sn_document_get(sn_document_get(entry->node, "in"), set->name), config, err);
}

/* What the suite itself decides. */
static sn_status set_own(const suite_spec *spec, const suite_set *set, const suite_entry *entry, int64_t seed, int64_t fold,
                         sn_config *config, sn_error *err) {
  static const char *const PATHS[] = {"data.dir", "data.labels"};
  char text[64];
  if (sn_config_is_set(config, "train.seed"))
    return sn_document_fail(entry->node, spec->path, err, "run '%s': train.seed is set, and 'seeds' is what decides it", entry->name);
  snprintf(text, sizeof text, "%" PRId64, seed);
  SN_TRY(sn_config_set(config, "train.seed", text, spec->path, -1, err));
  if (fold >= 0) {
    if (sn_config_text(config, "data.fold")[0] != '\0')
      return sn_document_fail(entry->node, spec->path, err, "run '%s': data.fold is set, and 'folds' is what decides it", entry->name);
    snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, fold, set->n_folds);
    SN_TRY(sn_config_set(config, "data.fold", text, spec->path, -1, err));
  }
  for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0] && spec->base != NULL; i++) {
    const char *given = sn_config_is_set(config, PATHS[i]) ? sn_config_text(config, PATHS[i]) : "";
    char *path = NULL;
    if (given[0] == '\0' || strcmp(given, "synthetic") == 0) continue;
    SN_TRY(suite_path(spec, given, &path, err));
    const sn_status status = sn_config_set(config, PATHS[i], path, spec->path, -1, err);
    sn_free(path);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static sn_status planned_tokens(const sn_config *config, int64_t *tokens, sn_error *err) {
  sn_train_phase phases[SN_TRAIN_PHASES];
  int n;
  SN_TRY(sn_phases_read(config, phases, &n, err));
  *tokens = 0;
  for (int i = 0; i < n; i++) {
    const sn_config *c = phases[i].config != NULL ? phases[i].config : config;
    int64_t step = 0, all = 0;
    if (!sn_mul_ok(sn_config_int(c, "train.pack_tokens"), sn_config_int(c, "train.packs_per_step"), &step) ||
        !sn_mul_ok(step, phases[i].last - phases[i].first, &all) || !sn_add_ok(*tokens, all, tokens))
      return sn_fail(err, SN_E_ARGUMENT, "more tokens than can be counted");
  }
  return SN_OK;
}

static sn_status apply_budget(const suite_spec *spec, const suite_set *set, const suite_entry *entry, sn_config *config,
                              sn_error *err) {
  int64_t planned = 0;
  if (set->budget_tokens == 0) return SN_OK;
  const double wanted = (double)set->budget_tokens;
  const double step = (double)sn_config_int(config, "train.pack_tokens") * (double)sn_config_int(config, "train.packs_per_step");
  const double steps = fmax(1, floor(wanted / step + 0.5));
  if (set->budget_scales) {
    char text[32];
    if (sn_config_phase(config, 0) != config)
      return sn_document_fail(set->budget, spec->path, err, "run '%s' has phases, whose steps no rule can scale: set them, and "
                              "'rule: refuse'", entry->name);
    snprintf(text, sizeof text, "%.0f", steps);
    return sn_config_set(config, "train.steps", text, spec->path, -1, err);
  }
  SN_TRY(planned_tokens(config, &planned, err));
  if (fabs((double)planned - wanted) <= BUDGET_TOLERANCE * wanted) return SN_OK;
  return sn_document_fail(entry->node, spec->path, err, "run '%s': its steps have places for %" PRId64 " tokens, the budget is %" PRId64
                          " (5 %% more or less is accepted): train.steps %.0f would fit, or 'rule: scale' in 'budget'",
                          entry->name, planned, set->budget_tokens, steps);
}

sn_status suite_spec_config(const suite_spec *spec, const suite_set *set, const suite_entry *entry, int64_t seed, int64_t fold,
                            sn_config **out, int64_t *steps, int64_t *tokens, sn_error *err) {
  sn_config *config = NULL;
  sn_error local;
  sn_status status;
  SN_TRY(sn_run_config_create(&config, err));
  SN_TRY_GOTO(apply_layers(spec, set, entry, config, err), fail);
  SN_TRY_GOTO(set_own(spec, set, entry, seed, fold, config, err), fail);
  SN_TRY_GOTO(apply_budget(spec, set, entry, config, err), fail);
  if (sn_pretrain_check(config, steps, &local) != SN_OK || planned_tokens(config, tokens, &local) != SN_OK) {
    status = sn_document_fail(entry->node, spec->path, err, "run '%s'%s%s: %s", entry->name, set->name[0] != '\0' ? " in set " : "",
                              set->name, local.message);
    goto fail;
  }
  if (fold < 0 && sn_config_text(config, "data.fold")[0] == '\0' && sn_config_text(config, "data.split")[0] == '\0' &&
      strcmp(sn_config_text(config, "data.dir"), "synthetic") != 0) {
    /* Such a run has seen everybody: only tasks on other data can be probed, or transductive ones. */
    for (int64_t i = 0; i < set->n_tasks; i++)
      if (set->tasks[i].data == NULL && !set->tasks[i].probe.transductive) {
        status = sn_document_fail(entry->node, spec->path, err, "run '%s' leaves nobody out, so that task '%s' has nobody to test on: "
                                  "'folds: 5', data.fold or data.split in the settings", entry->name, set->tasks[i].name);
        goto fail;
      }
  }
  *out = config;
  return SN_OK;
fail:
  sn_config_destroy(config);
  return status;
}
