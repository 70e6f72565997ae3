/* needs: full */
#include "engine/run_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "datasets/mixture.h"
#include "datasets/token_stage.h"
#include "engine/run.h"
#include "modalities/modality.h"

struct sn_run_sources {
  int64_t n;
  sn_run_signal *data[SN_MOST_PARTS];
};

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static bool begins(const char *key, const char *prefix) { return strncmp(key, prefix, strlen(prefix)) == 0; }

/* data.*, augmentations and a modality's own keys; the rest is the run's: one model is trained, on one split. */
static bool of_source(const char *key) {
  if (strcmp(key, "data.share_exponent") == 0 || strcmp(key, "data.split_seed") == 0) return false;
  bool found = begins(key, "data.") || begins(key, "augment.");
  for (int64_t i = 0; i < sn_n_modalities; i++) {
    const size_t n = strlen(sn_modalities[i]->name);
    found = found || (strncmp(key, sn_modalities[i]->name, n) == 0 && key[n] == '.');
  }
  return found;
}

static sn_status check_keys(const sn_config *config, int64_t i, sn_error *err) {
  const sn_config *source = sn_config_source(config, i);
  for (int64_t k = -1; (k = sn_config_next_own(source, k)) >= 0;) {
    const char *key = sn_config_key(source, k);
    if (!of_source(key))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, key, "sources.%lld.%s: is the same for all sources of a run: set it at the top "
                        "level", (long long)i, key);
  }
  return SN_OK;
}

static sn_status name_source(sn_config *source, const char *listed, const char *dir, sn_error *err) {
  const char *name = sn_config_text(source, "data.name");
  char *real = NULL;
  if (listed == NULL && name[0] == '\0') { /* the directory's own, as the index has it */
    real = realpath(dir, NULL);
    listed = real != NULL ? sn_path_base(real) : sn_path_base(dir);
  }
  sn_status status = SN_OK;
  if (name[0] == '\0') status = sn_config_set(source, "data.name", listed, "name", -1, err);
  free(real);
  SN_TRY(status);
  name = sn_config_text(source, "data.name");
  if (name[0] == '\0' || name[0] == '.' || strlen(name) >= SN_PART_NAME || strpbrk(name, "/\t\r\n\"\\") != NULL)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.name", "source '%s': a name of 1 to %d bytes that can be a folder's; set "
                      "name", name, SN_PART_NAME - 1);
  return SN_OK;
}

/* Whether a is b or lies in it. */
static bool lies_in(const char *a, const char *b) {
  const size_t n = strlen(b);
  return strncmp(a, b, n) == 0 && (a[n] == '\0' || a[n] == '/' || (n > 0 && b[n - 1] == '/'));
}

static sn_status check_directories(const sn_config *config, int64_t i, int64_t j, sn_error *err) {
  const char *x = sn_config_text(sn_config_source(config, i), "data.dir");
  const char *y = sn_config_text(sn_config_source(config, j), "data.dir");
  char *a = realpath(x, NULL), *b = realpath(y, NULL);
  sn_status status = SN_OK;
  if (a != NULL && b != NULL && strcmp(a, b) == 0)
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.dir", "sources %lld and %lld are the same folder, %s: every recording "
                        "would be there twice", (long long)j, (long long)i, x);
  else if (a != NULL && b != NULL && (lies_in(a, b) || lies_in(b, a)))
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.dir", "source %s lies inside source %s: its recordings would be there "
                        "twice", lies_in(a, b) ? x : y, lies_in(a, b) ? y : x);
  free(a);
  free(b);
  return status;
}

/* Itself, and not through the top level. */
static bool states(const sn_config *source, const char *key) {
  for (int64_t k = -1; (k = sn_config_next_own(source, k)) >= 0;)
    if (strcmp(sn_config_key(source, k), key) == 0) return true;
  return false;
}

static sn_status check_source(sn_config *config, int64_t i, sn_error *err) {
  sn_config *source = sn_config_source(config, i);
  const char *dir = sn_config_text(source, "data.dir");
  if (dir[0] == '\0' || strcmp(dir, "synthetic") == 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.dir", "sources.%lld.data.dir '%s': each source of a mixture is a directory "
                      "of recordings", (long long)i, dir);
  SN_TRY(check_keys(config, i, err));
  SN_TRY(name_source(source, sn_config_source_name(config, i), dir, err));
  const char *name = sn_config_text(source, "data.name");
  if (states(source, "data.share") && !(sn_config_real(source, "data.share") > 0))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.share", "source %s: a share of 0 would read nothing of it: leave the source "
                      "out, or its share to the data", name);
  for (int64_t j = 0; j < i; j++) {
    SN_TRY(check_directories(config, i, j, err));
    if (strcmp(name, sn_config_text(sn_config_source(config, j), "data.name")) == 0)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "name", "sources %lld and %lld are both called %s: ids of persons and samples "
                        "would agree; give one a `name`", (long long)j, (long long)i, name);
  }
  return SN_OK;
}

sn_status sn_run_sources_check(sn_config *config, sn_error *err) {
  const int64_t n = sn_config_sources(config);
  if (n > SN_MOST_PARTS)
    return sn_fail(err, SN_E_ARGUMENT, "%lld sources; at most %d are possible", (long long)n, SN_MOST_PARTS);
  if (sn_config_is_set(config, "data.dir") && sn_config_text(config, "data.dir")[0] != '\0')
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.dir", "data.dir %s beside a list of sources: give every directory as a "
                      "source, or only data.dir", sn_config_text(config, "data.dir"));
  if (sn_config_text(config, "data.stratify")[0] != '\0')
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, "data.stratify", "data.stratify: folds over several sources are not stratified; "
                      "leave it out");
  for (int64_t i = 0; i < n; i++) SN_TRY(check_source(config, i, err));
  return SN_OK;
}

/* ---- persons of all sources -------------------------------------------------------------------------------------- */

typedef struct dealing {
  int64_t n; /* items: recordings of known persons of the sources with folds */
  uint64_t *groups;
  int32_t *strata; /* source: each leaves out its part of people */
  int32_t *dealt;
  int32_t *folds[SN_MOST_PARTS]; /* of each source's lines */
} dealing;

static void free_dealing(dealing *d) {
  for (int64_t s = 0; s < SN_MOST_PARTS; s++) sn_free(d->folds[s]);
  sn_free(d->groups);
  sn_free(d->strata);
  sn_free(d->dealt);
}

static bool has_fold(const sn_config *config, int64_t s) {
  return sn_config_text(sn_config_source(config, s), "data.fold")[0] != '\0';
}

static sn_status deal(const sn_run_sources *r, const sn_config *config, dealing *d, sn_error *err) {
  const char *text = NULL;
  int64_t total = 0, fold, n_folds, made;
  for (int64_t s = 0; s < r->n; s++) {
    const char *own = sn_config_text(sn_config_source(config, s), "data.fold");
    if (own[0] == '\0') continue;
    if (text != NULL && strcmp(own, text) != 0)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.fold", "sources leave out folds %s and %s: a run leaves out one fold of "
                        "all its people", text, own);
    text = own;
    total += r->data[s]->manifest->n;
  }
  if (text == NULL) return SN_OK;
  SN_TRY(sn_parse_fold(text, &fold, &n_folds, err));
  SN_TRY(sn_alloc(&d->groups, total, sizeof *d->groups, "folds", err));
  SN_TRY(sn_alloc(&d->strata, total, sizeof *d->strata, "folds", err));
  SN_TRY(sn_alloc(&d->dealt, total, sizeof *d->dealt, "folds", err));
  for (int64_t s = 0; s < r->n; s++) {
    const sn_run_signal *data = r->data[s];
    if (!has_fold(config, s)) continue;
    SN_TRY(sn_alloc(&d->folds[s], data->manifest->n, sizeof **d->folds, "folds", err));
    for (int64_t i = 0; i < data->manifest->n; i++)
      if (data->manifest->rows[i].ok && data->subjects->ids[i] != NULL) {
        d->strata[d->n] = (int32_t)s;
        d->groups[d->n++] = sn_subject_hash(data->manifest, data->subjects, i);
      }
  }
  SN_TRY(sn_grouped_folds(d->groups, d->strata, d->n, n_folds, (uint64_t)sn_config_int(config, "data.split_seed"), d->dealt,
                          &made, err));
  if (made < n_folds)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.fold", "%lld folds of the %lld people of all sources cannot be made",
                      (long long)n_folds, (long long)made);
  int64_t at = 0;
  for (int64_t s = 0; s < r->n; s++) {
    const sn_run_signal *data = r->data[s];
    for (int64_t i = 0; d->folds[s] != NULL && i < data->manifest->n; i++)
      d->folds[s][i] = data->manifest->rows[i].ok && data->subjects->ids[i] != NULL ? d->dealt[at++] : -1;
  }
  return SN_OK;
}

/* Nobody whom one source leaves for testing is pretrained on from another. */
static sn_status check_pair(const sn_split *a, const sn_split *b, sn_error *err) {
  sn_leakage found;
  SN_TRY(sn_split_leakage(a, SN_ROLE_PRETRAIN, b, SN_ROLE_PROBE_TEST, &found, err));
  if (found.n_subjects == 0 && found.n_contents == 0) return SN_OK;
  return sn_fail(err, SN_E_STATE, "%lld persons and %lld recordings that %s leaves for testing are pretrained on from %s, first %s: "
                 "exclude them from one, or leave the same fold out of both", (long long)found.n_subjects,
                 (long long)found.n_contents, b->dataset, a->dataset, found.names[0]);
}

static sn_status check_across(const sn_run_sources *r, const sn_log *log, sn_error *err) {
  for (int64_t a = 0; a < r->n; a++)
    for (int64_t b = 0; b < r->n; b++) {
      const sn_split *x = r->data[a]->split, *y = r->data[b]->split;
      sn_leakage twice;
      if (a == b) continue;
      SN_TRY(check_pair(x, y, err));
      if (b > a) continue;
      SN_TRY(sn_split_leakage(x, SN_ROLE_PRETRAIN, y, SN_ROLE_PRETRAIN, &twice, err));
      if (twice.n_contents > 0)
        sn_log_write(log, SN_LOG_WARNING, "%lld recordings of %s are in %s too and count twice, first %s",
                     (long long)twice.n_contents, x->dataset, y->dataset, twice.names[twice.n_named - 1]);
    }
  return SN_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

static sn_status source_folder(const char *run, const char *name, char **out, sn_error *err) {
  char *all = NULL;
  *out = NULL;
  if (run == NULL) return SN_OK;
  SN_TRY(sn_path_join(run, "sources", &all, err));
  sn_status status = sn_path_join(all, name, out, err);
  if (status == SN_OK) status = sn_make_directories(*out, err);
  sn_free(all);
  return status;
}

/* One modality: the top level has it too. */
static sn_status share_modality(sn_config *config, sn_error *err) {
  const char *first = sn_config_text(sn_config_source(config, 0), "data.modality");
  const sn_modality *modality = NULL;
  for (int64_t s = 1; s < sn_config_sources(config); s++)
    if (strcmp(sn_config_text(sn_config_source(config, s), "data.modality"), first) != 0) return SN_OK;
  SN_TRY(sn_modality_find(first, &modality, err));
  return sn_modality_apply(modality, config, err);
}

sn_status sn_run_sources_open(sn_config *config, const char *run, bool resume, const sn_log *log, sn_run_sources **out,
                              sn_error *err) {
  sn_run_sources *r = NULL;
  dealing d = {.n = 0};
  char *folder = NULL;
  int64_t first = 0;
  sn_status status;
  SN_TRY(sn_alloc(&r, 1, sizeof *r, "run data", err));
  r->n = sn_config_sources(config);
  for (int64_t s = 0; s < r->n; s++) {
    sn_config *source = sn_config_source(config, s);
    SN_TRY_GOTO(source_folder(run, sn_config_text(source, "data.name"), &folder, err), fail);
    SN_TRY_GOTO(sn_run_signal_find(source, folder, resume, run, first, log, &r->data[s], err), fail);
    r->data[s]->one_of_several = r->n > 1;
    first += r->data[s]->manifest->n;
    sn_free(folder);
    folder = NULL;
  }
  SN_TRY_GOTO(share_modality(config, err), fail);
  SN_TRY_GOTO(deal(r, config, &d, err), fail);
  for (int64_t s = 0; s < r->n; s++) {
    const sn_config *source = sn_config_source(config, s);
    SN_TRY_GOTO(source_folder(run, sn_config_text(source, "data.name"), &folder, err), fail);
    SN_TRY_GOTO(sn_run_signal_split(r->data[s], source, folder, resume, d.folds[s], log, err), fail);
    sn_free(folder);
    folder = NULL;
  }
  SN_TRY_GOTO(check_across(r, log, err), fail);
  free_dealing(&d);
  *out = r;
  return SN_OK;
fail:
  free_dealing(&d);
  sn_free(folder);
  sn_run_sources_destroy(r);
  return status;
}

void sn_run_sources_destroy(sn_run_sources *r) {
  if (r == NULL) return;
  for (int64_t s = 0; s < r->n; s++) sn_run_signal_destroy(r->data[s]);
  sn_free(r);
}

/* Tokens that have one width may still be of other stretches or frequencies. */
static sn_status check_tokens(const sn_run_sources *r, const sn_config *config, sn_error *err) {
  static const char *const LENGTHS[] = {"data.patch", "data.patch_stride", "data.rate"};
  const sn_config *first = sn_config_source(config, 0);
  const bool spectra = strcmp(sn_config_text(first, "data.tokens"), "waveform") != 0;
  for (int64_t s = 1; s < r->n; s++) {
    const sn_config *source = sn_config_source(config, s);
    const char *key = NULL;
    const int n = spectra ? 2 : 3; /* the frequencies of a spectrum are the same at any rate, its width says how many */
    for (int k = 0; k < n && key == NULL; k++)
      if (sn_config_real(first, LENGTHS[k]) != sn_config_real(source, LENGTHS[k])) key = LENGTHS[k];
    if (key == NULL && sn_token_stage_same(first, source, &key)) continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, key, "sources %s and %s have another %s: one embedder serves both, so that their "
                      "patches must be alike", sn_config_text(first, "data.name"), sn_config_text(source, "data.name"), key);
  }
  return SN_OK;
}

sn_status sn_run_sources_mix(const sn_run_sources *r, const sn_config *config, const sn_log *log, sn_source **out,
                             sn_error *err) {
  sn_mixture_input inputs[SN_MOST_PARTS];
  int64_t n = 0;
  sn_status status = SN_OK;
  SN_TRY(check_tokens(r, config, err));
  while (n < r->n) {
    const sn_run_signal *data = r->data[n];
    const sn_config *source = sn_config_source(config, n);
    sn_mixture_input *input = &inputs[n++]; /* from here on its source, even one that was not finished, is given up below */
    *input = (sn_mixture_input){.name = sn_config_text(source, "data.name"), .share = sn_config_real(source, "data.share")};
    sn_log_write(log, SN_LOG_INFO, "source %s (%s):", input->name, sn_config_text(source, "data.modality"));
    SN_TRY_GOTO(sn_run_signal_source(data, source, SN_ROLE_PRETRAIN, log, &input->source, err), fail);
    SN_TRY_GOTO(sn_run_attach_source_stage(input->source, config, source, true, err), fail);
  }
  SN_TRY(sn_source_create_mixture(inputs, n, sn_config_real(config, "data.share_exponent"), out, err));
  for (int64_t s = 0; s < n; s++) {
    const sn_source_part *p = &(*out)->parts[s];
    sn_log_write(log, SN_LOG_INFO, "  %s: %lld windows, %lld tokens a pass, %.4g of the tokens", p->name,
                 (long long)p->n_windows, (long long)p->tokens, p->share);
  }
  return SN_OK;
fail:
  for (int64_t s = 0; s < n; s++) sn_source_destroy(inputs[s].source);
  return status;
}
