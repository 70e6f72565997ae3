/* needs: full */
/* `sonde embed RUN --out FILE`: frozen features of every recording, for other programs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/embed.h"
#include "cli/args.h"
#include "cli/terminal.h"
#include "modalities/unit_check.h"
#include "core/fs.h"
#include "core/json.h"

static const sn_option OPTIONS[] = {
    {"data", "DIR", false, "directory of recordings (default: the run's own)"},
    {"out", "FILE", false, ".h5: features, recording, subject, window_start_s and attributes; .npy: features, and a .tsv beside it"},
    {"pool", "POOL", false, "mean | mean_max_std | per_channel | cls | flatten (default: mean)"},
    {"windows", NULL, false, "a row per window (default: per recording, the mean over its windows)"},
    {"step", "N", false, "checkpoint of this step (default: the newest)"},
    {"ema", NULL, false, "the moving average of the weights"},
    {"assume-unit", "UNIT", false, "unit of channels that state none"},
    {"threads", "N", false, "default: all cores"},
    {"json", NULL, false, "a summary as one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static sn_status parse(const sn_args *args, sn_embed_options *o, const char **out, sn_error *err) {
  *o = (sn_embed_options){.run = sn_args_positional(args, 0), .data = sn_args_get(args, "data"),
                          .assume_unit = sn_args_get(args, "assume-unit"), .pool = SN_POOL_MEAN,
                          .windows = sn_args_has(args, "windows"), .use_ema = sn_args_has(args, "ema"), .log = sn_terminal_log()};
  *out = sn_args_get(args, "out");
  SN_TRY(sn_unit_check(o->assume_unit, "assume-unit", err));
  if (*out == NULL) return sn_fail(err, SN_E_ARGUMENT, "--out FILE is needed: a name ending in .h5 or .npy");
  const char *extension = sn_path_extension(*out);
  if (strcmp(extension, ".h5") != 0 && strcmp(extension, ".hdf5") != 0 && strcmp(extension, ".npy") != 0)
    return sn_fail(err, SN_E_ARGUMENT, "--out %s: expected a name ending in .h5, .hdf5 or .npy", *out);
  SN_TRY(sn_embedding_check_output(*out, err));
  if (sn_args_has(args, "pool")) SN_TRY(sn_pool_parse(sn_args_get(args, "pool"), &o->pool, err));
  SN_TRY(sn_args_i64(args, "step", -1, &o->step, err));
  SN_TRY(sn_args_i64(args, "threads", 0, &o->n_threads, err));
  if (o->n_threads < 0 || o->n_threads > 1024) return sn_fail(err, SN_E_ARGUMENT, "--threads takes 0 to 1024");
  return SN_OK;
}

static sn_status report(const sn_args *args, const sn_embedding *e, const char *out, sn_error *err) {
  fprintf(stderr, "%s: %" PRId64 " rows of %" PRId64 " features (%s, step %" PRId64 ") from %" PRId64 " recordings", out, e->n,
          e->width, e->pool, e->checkpoint_step, e->n_recordings);
  if (e->n_dropped > 0) fprintf(stderr, "; %" PRId64 " without a usable window, first %s", e->n_dropped, e->first_dropped);
  fprintf(stderr, "\n");
  if (!sn_args_has(args, "json")) return SN_OK;
  sn_string text = {0};
  sn_json_writer w;
  sn_json_writer_init(&w, &text, 0);
  sn_json_begin_object(&w);
  sn_json_put_string(&w, "out", out);
  sn_json_put_string(&w, "pool", e->pool);
  sn_json_put_string(&w, "encoder_sha256", e->encoder_sha256);
  const struct { const char *key; int64_t value; } counts[] = {
      {"rows", e->n}, {"features", e->width}, {"recordings", e->n_recordings}, {"dropped", e->n_dropped},
      {"checkpoint_step", e->checkpoint_step}};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    sn_json_put_i64(&w, counts[i].key, counts[i].value);
  }
  sn_json_end_object(&w);
  sn_status status = sn_json_writer_finish(&w, err);
  if (status == SN_OK) printf("%s\n", text.data);
  sn_string_free(&text);
  return status;
}

int sn_command_embed(int argc, char **argv);
int sn_command_embed(int argc, char **argv) {
  sn_args *args = NULL;
  sn_embed_options options;
  sn_embedding *embedding = NULL;
  const char *out = NULL;
  sn_error err;
  sn_status status;
  int code = 0;
  SN_TRY_GOTO(sn_args_parse(OPTIONS, "RUN", 1, 1, argc, argv, &args, &err), fail);
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "embed", "RUN", "Frozen features of every recording (or window), pooled over its tokens.");
    goto done;
  }
  SN_TRY_GOTO(parse(args, &options, &out, &err), fail);
  SN_TRY_GOTO(sn_embed(&options, &embedding, &err), fail);
  SN_TRY_GOTO(sn_embedding_write(embedding, options.run, out, &err), fail);
  SN_TRY_GOTO(report(args, embedding, out, &err), fail);
  goto done;
fail:
  code = sn_terminal_fail("embed", &err);
done:
  sn_embedding_destroy(embedding);
  sn_args_destroy(args);
  return code;
}
