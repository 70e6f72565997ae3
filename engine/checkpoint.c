#include "engine/checkpoint.h"

#include <stdio.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/sha256.h"
#include "core/stream.h"

static const struct {
  const char *file;
  char which[3];
} PARTS[] = {{"model.safetensors", "w"}, {"ema.safetensors", "e"}, {"optimizer.safetensors", "mv"}};
enum { N_PARTS = 3 };

/* --- the integers and texts of a state, once for writing and reading --------------------------------------------- */

typedef struct state_field {
  const char *key;
  size_t offset;
} state_field;

#define INTEGER(name) {#name, offsetof(sn_train_state, name)}
static const state_field INTEGERS[] = {
    INTEGER(step), INTEGER(updates), INTEGER(position), INTEGER(tokens), INTEGER(samples), INTEGER(metrics_bytes),
    INTEGER(events_bytes), INTEGER(nonfinite_steps), INTEGER(nonfinite_in_row), INTEGER(empty_steps),
    INTEGER(n_threads), INTEGER(patch_size), INTEGER(n_channel_ids), INTEGER(pack_slots), INTEGER(pack_samples),
    INTEGER(max_tokens)};
#undef INTEGER
enum { N_INTEGERS = sizeof INTEGERS / sizeof INTEGERS[0] };

static const struct {
  const char *key;
  size_t offset, size;
} TEXTS[] = {{"instruction_set", offsetof(sn_train_state, isa), sizeof(((sn_train_state *)0)->isa)},
             {"dtype", offsetof(sn_train_state, dtype), sizeof(((sn_train_state *)0)->dtype)},
             {"engine_version", offsetof(sn_train_state, version), sizeof(((sn_train_state *)0)->version)},
             {"content_hash", offsetof(sn_train_state, content_hash), sizeof(((sn_train_state *)0)->content_hash)}};
enum { N_TEXTS = 4 };

static void write_targets(sn_json_writer *w, const sn_train_state *state) {
  sn_json_write_key(w, "targets");
  sn_json_begin_array(w);
  for (int i = 0; i < state->n_targets; i++) {
    sn_json_begin_object(w);
    sn_json_put_string(w, "name", state->targets[i].name);
    sn_json_put_bool(w, "per_token", state->targets[i].per_token);
    sn_json_put_i64(w, "width", state->targets[i].width);
    sn_json_end_object(w);
  }
  sn_json_end_array(w);
}

static sn_status read_targets(const sn_json *list, sn_train_state *state, sn_error *err) {
  const int64_t n = sn_json_length(list);
  if (n > SN_MOST_TARGETS) return sn_fail(err, SN_E_CORRUPT, "state.json: %lld targets", (long long)n);
  for (int64_t i = 0; i < n; i++) {
    sn_target_spec *spec = &state->targets[i];
    const sn_json *item = sn_json_at(list, i);
    const char *name;
    SN_TRY(sn_json_get_string(item, "name", &name, err));
    if (strlen(name) >= sizeof spec->name) return sn_fail(err, SN_E_CORRUPT, "state.json: target '%.40s...'", name);
    strcpy(spec->name, name);
    SN_TRY(sn_json_get_bool(item, "per_token", &spec->per_token, err));
    SN_TRY(sn_json_get_i64(item, "width", &spec->width, err));
  }
  state->n_targets = (int)n;
  return SN_OK;
}

static void write_parts(sn_json_writer *w, const sn_train_state *state) {
  sn_json_write_key(w, "sources");
  sn_json_begin_array(w);
  for (int64_t i = 0; i < state->n_parts; i++) {
    const sn_part_state *p = &state->parts[i];
    sn_json_begin_object(w);
    sn_json_put_string(w, "name", p->name);
    sn_json_put_f64(w, "share", p->share);
    sn_json_put_i64(w, "windows", p->n_windows);
    sn_json_put_i64(w, "tokens", p->tokens);
    sn_json_put_i64(w, "samples", p->samples);
    sn_json_end_object(w);
  }
  sn_json_end_array(w);
}

static sn_status read_parts(const sn_json *list, sn_train_state *state, sn_error *err) {
  const int64_t n = sn_json_length(list);
  if (n > SN_MOST_PARTS) return sn_fail(err, SN_E_CORRUPT, "state.json: %lld sources", (long long)n);
  for (int64_t i = 0; i < n; i++) {
    sn_part_state *p = &state->parts[i];
    const sn_json *item = sn_json_at(list, i);
    const char *name;
    SN_TRY(sn_json_get_string(item, "name", &name, err));
    if (strlen(name) >= sizeof p->name) return sn_fail(err, SN_E_CORRUPT, "state.json: source '%.40s...'", name);
    strcpy(p->name, name);
    SN_TRY(sn_json_get_f64(item, "share", &p->share, err));
    SN_TRY(sn_json_get_i64(item, "windows", &p->n_windows, err));
    SN_TRY(sn_json_get_i64(item, "tokens", &p->tokens, err));
    SN_TRY(sn_json_get_i64(item, "samples", &p->samples, err));
  }
  state->n_parts = n;
  return SN_OK;
}

static void write_monitor(sn_json_writer *w, const sn_monitor_state *m) {
  sn_json_write_key(w, "monitor");
  sn_json_begin_object(w);
  sn_json_put_i64(w, "steps", m->steps);
  sn_json_put_i64(w, "low_in_row", m->low_in_row);
  sn_json_put_bool(w, "collapsed", m->collapsed);
  sn_json_put_i64(w, "collapsed_at", m->collapsed_at);
  sn_json_put_i64(w, "block_steps", m->block_steps);
  sn_json_put_f64(w, "block_sum", m->block_sum);
  sn_json_put_i64(w, "blocks", m->blocks);
  sn_json_put_f64(w, "best_mean", m->best_mean);
  sn_json_put_i64(w, "best_at", m->best_at);
  sn_json_put_bool(w, "plateau", m->plateau);
  sn_json_end_object(w);
}

static sn_status read_monitor(const sn_json *json, sn_monitor_state *m, sn_error *err) {
  SN_TRY(sn_json_get_i64(json, "steps", &m->steps, err));
  SN_TRY(sn_json_get_i64(json, "low_in_row", &m->low_in_row, err));
  SN_TRY(sn_json_get_bool(json, "collapsed", &m->collapsed, err));
  SN_TRY(sn_json_get_i64(json, "collapsed_at", &m->collapsed_at, err));
  SN_TRY(sn_json_get_i64(json, "block_steps", &m->block_steps, err));
  SN_TRY(sn_json_get_f64(json, "block_sum", &m->block_sum, err));
  SN_TRY(sn_json_get_i64(json, "blocks", &m->blocks, err));
  SN_TRY(sn_json_get_f64(json, "best_mean", &m->best_mean, err));
  SN_TRY(sn_json_get_i64(json, "best_at", &m->best_at, err));
  return sn_json_get_bool(json, "plateau", &m->plateau, err);
}

static void write_state_fields(sn_json_writer *w, const sn_train_state *state) {
  for (int i = 0; i < N_INTEGERS; i++) {
    sn_json_put_i64(w, INTEGERS[i].key, *(const int64_t *)((const char *)state + INTEGERS[i].offset));
  }
  for (int i = 0; i < N_TEXTS; i++) {
    sn_json_put_string(w, TEXTS[i].key, (const char *)state + TEXTS[i].offset);
  }
  sn_json_put_f64(w, "patch_step", state->patch_step);
  sn_json_put_bool(w, "inexact_resume", state->inexact);
  if (state->rejected > 0) sn_json_put_i64(w, "rejected", state->rejected);
  if (state->most_positions > 0) sn_json_put_i64(w, "most_positions", state->most_positions);
  if (state->most_series > 0) sn_json_put_i64(w, "most_series", state->most_series);
  if (state->n_extra > 0) {
    sn_json_put_i64(w, "n_extra", state->n_extra);
    sn_json_put_bool(w, "embed_extra", state->embed_extra);
  }
  if (state->phase_updates > 0) {
    sn_json_put_i64(w, "phase_updates", state->phase_updates);
  }
  if (state->n_targets > 0) write_targets(w, state);
  if (state->n_parts > 0) write_parts(w, state);
  if (state->monitor.steps > 0) write_monitor(w, &state->monitor);
  if (state->best_step < 0) return;
  sn_json_put_i64(w, "best_step", state->best_step);
  sn_json_put_f64(w, "best_score", state->best_score);
  sn_json_put_f64(w, "best_tie", state->best_tie);
}

/* The last key of state.json is the SHA-256 of all that stands before it: damage to an integer would go unseen
 * otherwise. */
static const char SEAL[] = ",\n \"sha256\": \"";

static sn_status load_sealed(const char *file, sn_json **out, sn_error *err) {
  enum { MOST = 1 << 30 };
  sn_stream *stream = NULL;
  char *text = NULL, hex[65];
  const char *seal = NULL;
  int64_t n = 0;
  sn_status status;
  SN_TRY_GOTO(sn_stream_open(file, &stream, err), done);
  SN_TRY_GOTO(sn_stream_read_all(stream, MOST, &text, &n, err), done);
  for (const char *at = text; (at = strstr(at, SEAL)) != NULL; at++) seal = at;
  if (seal != NULL) sn_sha256_text(text, seal - text, hex);
  if (seal == NULL || strncmp(seal + strlen(SEAL), hex, 64) != 0) {
    if (seal == NULL)
      status = sn_fail(err, SN_E_CORRUPT, "%s: it holds no SHA-256 of itself: an older build of sonde wrote it, or it is cut "
                       "short. Go on with the build that wrote it, or pretrain again", file);
    else
      status = sn_fail(err, SN_E_CORRUPT, "%s: its own SHA-256 is another: damaged, or edited by hand", file);
    goto done;
  }
  status = sn_json_parse(text, n, file, out, err);
done:
  sn_free(text);
  sn_stream_close(stream);
  return status;
}

/* What only runs with phases, evaluations or rejected windows have. */
static sn_status read_optional(const sn_json *root, sn_train_state *state, sn_error *err) {
  state->best_step = -1;
  state->best_score = state->best_tie = NAN;
  if (sn_json_get(root, "rejected") != NULL) SN_TRY(sn_json_get_i64(root, "rejected", &state->rejected, err));
  if (sn_json_get(root, "most_positions") != NULL)
    SN_TRY(sn_json_get_i64(root, "most_positions", &state->most_positions, err));
  if (sn_json_get(root, "most_series") != NULL) SN_TRY(sn_json_get_i64(root, "most_series", &state->most_series, err));
  if (sn_json_get(root, "n_extra") != NULL) {
    SN_TRY(sn_json_get_i64(root, "n_extra", &state->n_extra, err));
    SN_TRY(sn_json_get_bool(root, "embed_extra", &state->embed_extra, err));
  }
  if (sn_json_get(root, "phase_updates") != NULL)
    SN_TRY(sn_json_get_i64(root, "phase_updates", &state->phase_updates, err));
  if (sn_json_get(root, "targets") != NULL) SN_TRY(read_targets(sn_json_get(root, "targets"), state, err));
  if (sn_json_get(root, "sources") != NULL) SN_TRY(read_parts(sn_json_get(root, "sources"), state, err));
  if (sn_json_get(root, "monitor") != NULL) SN_TRY(read_monitor(sn_json_get(root, "monitor"), &state->monitor, err));
  if (sn_json_get(root, "best_step") == NULL) return SN_OK;
  SN_TRY(sn_json_get_i64(root, "best_step", &state->best_step, err));
  SN_TRY(sn_json_get_f64(root, "best_score", &state->best_score, err));
  return sn_json_get_f64(root, "best_tie", &state->best_tie, err);
}

sn_status sn_checkpoint_read_state(const char *path, sn_train_state *state, sn_json **json, sn_error *err) {
  char *file = NULL;
  sn_json *root = NULL;
  sn_status status;
  memset(state, 0, sizeof *state);
  SN_TRY_GOTO(sn_path_join(path, "state.json", &file, err), fail);
  SN_TRY_GOTO(load_sealed(file, &root, err), fail);
  for (int i = 0; i < N_INTEGERS; i++)
    SN_TRY_GOTO(sn_json_get_i64(root, INTEGERS[i].key, (int64_t *)((char *)state + INTEGERS[i].offset), err), fail);
  for (int i = 0; i < N_TEXTS; i++) {
    const char *text;
    SN_TRY_GOTO(sn_json_get_string(root, TEXTS[i].key, &text, err), fail);
    if (strlen(text) >= TEXTS[i].size) {
      status = sn_fail(err, SN_E_CORRUPT, "%s: %s is longer than %zu bytes", file, TEXTS[i].key, TEXTS[i].size - 1);
      goto fail;
    }
    strcpy((char *)state + TEXTS[i].offset, text);
  }
  SN_TRY_GOTO(sn_json_get_f64(root, "patch_step", &state->patch_step, err), fail);
  SN_TRY_GOTO(sn_json_get_bool(root, "inexact_resume", &state->inexact, err), fail);
  SN_TRY_GOTO(read_optional(root, state, err), fail);
  sn_free(file);
  *json = root;
  return SN_OK;
fail:
  sn_free(file);
  sn_json_destroy(root);
  return status;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* All tensors of one part: values, moving averages, or first and second moments.  The names of moments live in the lists
 * that the parameters made, so these are kept until the part is written or read. */
typedef struct part_list {
  sn_named_tensor *tensors; /* (n) */
  int64_t n;
  sn_named_tensor *made[2];
} part_list;

static void free_part(part_list *list) {
  sn_free(list->tensors);
  sn_free(list->made[0]);
  sn_free(list->made[1]);
}

static sn_status list_part(const sn_params *params, const char *which, part_list *list, sn_error *err) {
  int64_t n[2] = {0, 0};
  memset(list, 0, sizeof *list);
  for (int i = 0; which[i] != '\0'; i++) SN_TRY(sn_params_list(params, which[i], &list->made[i], &n[i], err));
  SN_TRY(sn_alloc(&list->tensors, n[0] + n[1], sizeof *list->tensors, "tensor list", err));
  for (int i = 0; i < 2; i++)
    for (int64_t k = 0; k < n[i]; k++) list->tensors[list->n++] = list->made[i][k];
  return SN_OK;
}

static void hash_tensors(sn_json_writer *w, const sn_named_tensor *list, int64_t n) {
  sn_json_begin_object(w);
  for (int64_t i = 0; i < n; i++) {
    char hex[65];
    sn_sha256_text(list[i].tensor.data, sn_tensor_bytes(&list[i].tensor), hex);
    sn_json_put_string(w, list[i].name, hex);
  }
  sn_json_end_object(w);
}

/* Writes one file and its entry in state.json. */
static sn_status write_part(const char *dir, int part, const sn_params *params, sn_json_writer *w, sn_error *err) {
  part_list list;
  char *path = NULL, hex[65];
  sn_status status;
  SN_TRY_GOTO(list_part(params, PARTS[part].which, &list, err), done);
  if (list.n == 0) goto done;
  SN_TRY_GOTO(sn_path_join(dir, PARTS[part].file, &path, err), done);
  SN_TRY_GOTO(sn_safetensors_write(path, list.tensors, list.n, NULL, 0, hex, err), done);
  sn_json_begin_object(w);
  sn_json_put_string(w, "name", PARTS[part].file);
  sn_json_put_string(w, "sha256", hex);
  sn_json_write_key(w, "tensors");
  hash_tensors(w, list.tensors, list.n);
  sn_json_end_object(w);
done:
  sn_free(path);
  free_part(&list);
  return status;
}

static sn_status check_space(const char *run, const sn_params *params, bool with_moments, sn_error *err) {
  int64_t available, needed = 1 << 20;
  const int64_t size = sn_dtype_size(sn_params_dtype(params));
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    const sn_param *p = sn_params_at(params, i);
    needed += sn_tensor_bytes(&p->value) + sn_tensor_bytes(&p->ema) * (p->ema.data != NULL) +
              (with_moments && p->m.data != NULL ? 2 * sn_tensor_count(&p->value) * size : 0);
  }
  SN_TRY(sn_free_space(run, &available, err));
  if (available < needed)
    return sn_fail(err, SN_E_IO, "%s: a checkpoint needs %lld MiB, %lld MiB are free; older checkpoints are untouched. "
                   "Make room, then resume", run, (long long)(needed >> 20), (long long)(available >> 20));
  return SN_OK;
}

static sn_status write_files(const char *dir, const sn_params *params, const sn_train_state *state, const char *ledger,
                             bool with_moments, sn_error *err) {
  sn_string text = {0};
  sn_json_writer w;
  sn_json *parsed = NULL;
  char *path = NULL;
  sn_status status;
  sn_json_writer_init(&w, &text, 1);
  sn_json_begin_object(&w);
  write_state_fields(&w, state);
  sn_json_write_key(&w, "files");
  sn_json_begin_array(&w);
  for (int i = 0; i < N_PARTS; i++)
    if (i != 2 || with_moments) SN_TRY_GOTO(write_part(dir, i, params, &w, err), done);
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  SN_TRY_GOTO(sn_json_writer_finish(&w, err), done);
  /* The ledger is a value of its own maker: set in as text before the closing brace. */
  while (text.length > 0 && text.data[text.length - 1] != '}') text.length--;
  text.length--;
  while (text.length > 0 && (text.data[text.length - 1] == '\n' || text.data[text.length - 1] == ' ')) text.length--;
  SN_TRY_GOTO(sn_string_printf(&text, err, ",\n \"ledger\": %s", ledger), done);
  char hex[65];
  sn_sha256_text(text.data, text.length, hex);
  SN_TRY_GOTO(sn_string_printf(&text, err, "%s%s\"\n}\n", SEAL, hex), done);
  SN_TRY_GOTO(sn_json_parse(text.data, text.length, "state.json", &parsed, err), done);
  SN_TRY_GOTO(sn_path_join(dir, "state.json", &path, err), done);
  SN_TRY_GOTO(sn_write_file(path, text.data, text.length, err), done);
  status = sn_fsync_path(dir, err);
done:
  sn_json_destroy(parsed);
  sn_free(path);
  sn_string_free(&text);
  return status;
}

/* Steps of the complete-looking directories, ascending. */
static sn_status list_steps(const char *folder, int64_t **steps, int64_t *n, sn_error *err) {
  sn_dir_entry *entries = NULL;
  int64_t n_entries = 0;
  *steps = NULL;
  *n = 0;
  if (!sn_path_exists(folder)) return SN_OK;
  SN_TRY(sn_dir_list(folder, &entries, &n_entries, err));
  sn_status status = sn_alloc(steps, n_entries, sizeof **steps, "checkpoint list", err);
  for (int64_t i = 0; i < n_entries && status == SN_OK; i++)
    if (strncmp(entries[i].name, "step-", 5) == 0 && sn_parse_i64(entries[i].name + 5, &(*steps)[*n])) (*n)++;
  sn_dir_free(entries, n_entries);
  return status;
}

static sn_status retain(const char *folder, int64_t keep_last, int64_t keep_every, int64_t best_step, sn_error *err) {
  int64_t *steps = NULL, n = 0;
  char *path = NULL, name[64];
  sn_status status;
  SN_TRY_GOTO(list_steps(folder, &steps, &n, err), done);
  for (int64_t i = 0; i + keep_last < n; i++) {
    if ((keep_every > 0 && steps[i] % keep_every == 0) || steps[i] == best_step) continue;
    snprintf(name, sizeof name, "step-%09lld", (long long)steps[i]);
    SN_TRY_GOTO(sn_path_join(folder, name, &path, err), done);
    SN_TRY_GOTO(sn_remove_tree(path, err), done);
    sn_free(path);
    path = NULL;
  }
done:
  sn_free(path);
  sn_free(steps);
  return status;
}

sn_status sn_checkpoint_write(const char *run, const sn_params *params, const sn_train_state *state, const char *ledger,
                              bool with_moments, int64_t keep_last, int64_t keep_every, const sn_log *log,
                              sn_error *err) {
  char *folder = NULL, *writing = NULL, *final = NULL, name[64];
  sn_status status;
  SN_TRY_GOTO(check_space(run, params, with_moments, err), done);
  SN_TRY_GOTO(sn_path_join(run, "checkpoints", &folder, err), done);
  SN_TRY_GOTO(sn_make_directories(folder, err), done);
  snprintf(name, sizeof name, "writing-step-%09lld", (long long)state->step);
  SN_TRY_GOTO(sn_path_join(folder, name, &writing, err), done);
  SN_TRY_GOTO(sn_path_join(folder, name + strlen("writing-"), &final, err), done);
  SN_TRY_GOTO(sn_remove_tree(writing, err), done); /* left by a run that was killed here */
  SN_TRY_GOTO(sn_make_directories(writing, err), done);
  sn_log_write(log, SN_LOG_DEBUG, "checkpoint step %lld: first write", (long long)state->step);
  status = write_files(writing, params, state, ledger, with_moments, err);
  if (status != SN_OK) {
    sn_error ignored;
    (void)!sn_remove_tree(writing, &ignored);
    goto done;
  }
  if (sn_path_exists(final)) SN_TRY_GOTO(sn_remove_tree(final, err), done); /* the same step, incomplete */
  SN_TRY_GOTO(sn_rename(writing, final, err), done);
  SN_TRY_GOTO(sn_fsync_path(folder, err), done);
  sn_log_write(log, SN_LOG_DEBUG, "checkpoint step %lld: renamed into place", (long long)state->step);
  status = retain(folder, keep_last, keep_every, state->best_step, err);
done:
  sn_free(folder);
  sn_free(writing);
  sn_free(final);
  return status;
}

/* --- finding and loading ------------------------------------------------------------------------------------------ */

static sn_status hash_file(const char *path, char hex[65], sn_error *err) {
  sn_stream *stream = NULL;
  uint8_t *buffer = NULL, digest[32];
  enum { PIECE = 1 << 20 };
  sn_sha256 hash;
  sn_status status;
  SN_TRY_GOTO(sn_stream_open(path, &stream, err), done);
  SN_TRY_GOTO(sn_alloc(&buffer, PIECE, 1, "file buffer", err), done);
  sn_sha256_init(&hash);
  for (int64_t at = 0;;) {
    int64_t n = 0;
    status = sn_stream_read(stream, at, buffer, PIECE, &n, err);
    if (status != SN_OK && status != SN_END) goto done;
    sn_sha256_update(&hash, buffer, n);
    at += n;
    if (status == SN_END) break;
  }
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, hex);
  status = SN_OK;
done:
  sn_free(buffer);
  sn_stream_close(stream);
  return status;
}

static sn_status verify(const char *path, int64_t step, sn_error *err) {
  sn_train_state state;
  sn_json *json = NULL;
  SN_TRY(sn_checkpoint_read_state(path, &state, &json, err));
  const sn_json *files = sn_json_get(json, "files");
  sn_status status = SN_OK;
  if (sn_json_length(files) <= 0)
    status = sn_fail(err, SN_E_CORRUPT, "%s/state.json: it names no files", path);
  else if (state.step != step)
    status = sn_fail(err, SN_E_CORRUPT, "%s/state.json: it is of step %lld", path, (long long)state.step);
  for (int64_t i = 0; i < sn_json_length(files) && status == SN_OK; i++) {
    const char *name, *sha;
    char *file = NULL, hex[65];
    status = sn_json_get_string(sn_json_at(files, i), "name", &name, err);
    if (status == SN_OK) status = sn_json_get_string(sn_json_at(files, i), "sha256", &sha, err);
    if (status == SN_OK) status = sn_path_join(path, name, &file, err);
    if (status == SN_OK) status = hash_file(file, hex, err);
    if (status == SN_OK && strcmp(hex, sha) != 0)
      status = sn_fail(err, SN_E_CORRUPT, "%s: SHA-256 is %.12s..., state.json says %.12s...", file, hex, sha);
    sn_free(file);
  }
  sn_json_destroy(json);
  return status;
}

sn_status sn_checkpoint_find(const char *run, int64_t step, const sn_log *log, char **path, int64_t *found,
                             sn_error *err) {
  char *folder = NULL, name[64];
  int64_t *steps = NULL, n = 0, n_damaged = 0;
  sn_status status;
  sn_error reason;
  *path = NULL;
  SN_TRY_GOTO(sn_path_join(run, "checkpoints", &folder, err), done);
  SN_TRY_GOTO(list_steps(folder, &steps, &n, err), done);
  for (int64_t i = n - 1; i >= 0; i--) {
    if (step >= 0 && steps[i] != step) continue;
    snprintf(name, sizeof name, "step-%09lld", (long long)steps[i]);
    SN_TRY_GOTO(sn_path_join(folder, name, path, err), done);
    n_damaged++;
    if (verify(*path, steps[i], &reason) == SN_OK) {
      *found = steps[i];
      goto done;
    }
    sn_log_write(log, SN_LOG_WARNING, "%s is not complete and is passed over: %s", *path, reason.message);
    sn_free(*path);
    *path = NULL;
  }
  if (n_damaged > 0)
    status = sn_fail(err, SN_E_CORRUPT,
                     "%s: none of its %lld checkpoints is whole; restore one, or remove checkpoints/ to "
                     "begin again; the last looked at: %s",
                     run, (long long)n_damaged, reason.message);
  else
    status = sn_fail(err, SN_END, "%s: no checkpoint%s", run, step >= 0 ? " of that step" : "");
done:
  sn_free(folder);
  sn_free(steps);
  return status;
}

static sn_status load_part(const char *dir, const char *file, const char *which, const sn_params *params,
                           sn_error *err) {
  part_list list;
  sn_load_report report;
  char *path = NULL;
  sn_status status;
  SN_TRY_GOTO(list_part(params, which, &list, err), done);
  SN_TRY_GOTO(sn_path_join(dir, file, &path, err), done);
  SN_TRY_GOTO(sn_safetensors_load(path, "", false, list.tensors, list.n, &report, err), done);
done:
  sn_free(path);
  free_part(&list);
  return status;
}

sn_status sn_checkpoint_load(const char *path, sn_params *params, bool with_moments, bool use_ema, sn_error *err) {
  SN_TRY(load_part(path, PARTS[use_ema ? 1 : 0].file, "w", params, err));
  if (with_moments) {
    SN_TRY(load_part(path, PARTS[2].file, "mv", params, err));
    if (sn_params_count(params) > 0 && sn_params_at(params, 0)->ema.data != NULL)
      SN_TRY(load_part(path, PARTS[1].file, "e", params, err));
  }
  for (int64_t i = 0; i < sn_params_count(params); i++) sn_params_at(params, i)->version++;
  return SN_OK;
}
