/* needs: full */
/* `sonde inspect PATH`: what a reader sees in a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/inspect.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "datasets/tree.h"
#include "modalities/unit_check.h"

#define SN_INSPECT_PART(name, help) \
  sn_status sn_inspect_##name(const sn_recording *, const inspect_request *, sn_json_writer *, sn_string *, sn_error *);
#include "cli/inspect_parts.def"
#undef SN_INSPECT_PART

static const sn_option OPTIONS[] = {
    {"json", NULL, false, "one JSON object on standard output"},
    {"stats", NULL, false, "read the data: statistics and hash of each channel; stated checksums are verified"},
    {"values", "FIRST:COUNT", false, "show these samples of each channel (segments joined, from 0)"},
    {"channel", "NAME", false, "--stats and --values for this channel alone"},
    {"annotations", NULL, false, "list all annotations"},
    {"annotator", "NAME", false, "which annotations, for WFDB the file's extension (default: atr)"},
    {"reference", "NAME", false, "with --beats: the annotations to compare with (default: atr, where it is there)"},
    {"tolerant", NULL, false, "read what is sound of truncated or contradicting files, and say what was repaired"},
    {"assume-unit", "UNIT", false, "unit of channels that state none"},
    {"assume-rate", "HZ", false, "rate of the fastest channel where the file cannot tell it (EDF with records of 0 s)"},
    {"dates", NULL, false, "show when the recording began: a date of the patient"},
#define SN_INSPECT_PART(name, help) {#name, NULL, false, help},
#include "cli/inspect_parts.def"
#undef SN_INSPECT_PART
    {NULL, NULL, false, NULL}};

static const struct {
  const char *name;
  inspect_part write;
} PARTS[] = {
#define SN_INSPECT_PART(name, help) {#name, sn_inspect_##name},
#include "cli/inspect_parts.def"
#undef SN_INSPECT_PART
    {NULL, NULL}};

void sn_inspect_fail(inspect_result *result, sn_status status, const sn_error *err) {
  if (status == SN_OK || result->status != SN_OK) return;
  result->status = status;
  result->error = *err;
}

static sn_status parse_request(const sn_args *args, inspect_request *request, sn_error *err) {
  *request = (inspect_request){.path = sn_args_positional(args, 0), .channel = sn_args_get(args, "channel"),
                               .annotator = sn_args_get(args, "annotator"),
                               .reference = sn_args_get(args, "reference"), .json = sn_args_has(args, "json"),
                               .stats = sn_args_has(args, "stats"), .values = sn_args_has(args, "values"),
                               .all_annotations = sn_args_has(args, "annotations"),
                               .tolerant = sn_args_has(args, "tolerant"), .dates = sn_args_has(args, "dates")};
  if (!request->values) return SN_OK;
  const char *text = sn_args_get(args, "values"), *colon = strchr(text, ':');
  char first[32];
  if (colon == NULL || colon - text >= (long)sizeof first)
    return sn_fail(err, SN_E_ARGUMENT, "--values %s: FIRST:COUNT is expected, such as 0:10", text);
  snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
  if (!sn_parse_i64(first, &request->first) || !sn_parse_i64(colon + 1, &request->count) || request->first < 0 ||
      request->count < 1)
    return sn_fail(err, SN_E_ARGUMENT, "--values %s: FIRST:COUNT is expected, such as 0:10", text);
  return SN_OK;
}

static bool is_asked_for(const inspect_result *result, int64_t channel) {
  const char *name = result->request->channel;
  return name == NULL || strcmp(result->recording->channels[channel].name, name) == 0;
}

/* Statistics and values, channel by channel; an unreadable one does not hide the others. */
static void read_channels(inspect_result *result) {
  const inspect_request *request = result->request;
  const sn_recording *r = result->recording;
  sn_error err;
  for (int64_t c = 0; c < r->n_channels; c++) {
    inspect_channel *channel = &result->channels[c];
    if (!is_asked_for(result, c)) continue;
    /* Trigger words are no signal: null for them, and no error unless they were asked for by name. */
    if (r->channels[c].kind == SN_SENSOR_TRIGGER && r->channels[c].uncalibrated && request->channel == NULL) continue;
    if (request->stats) sn_inspect_fail(result, sn_inspect_compute_stats(r, c, &channel->stats, &err), &err);
    if (!request->values) continue;
    int64_t all = sn_recording_samples(r, c, -1);
    sn_status status = request->first > all || request->count > all - request->first
                           ? sn_fail(&err, SN_E_ARGUMENT, "--values %lld:%lld: channel '%s' has %lld samples",
                                     (long long)request->first, (long long)request->count, r->channels[c].name,
                                     (long long)all)
                           : sn_alloc(&channel->values, request->count, sizeof *channel->values, "values", &err);
    if (status == SN_OK)
      status = sn_inspect_read_joined(r, c, request->first, request->count, channel->values, &err);
    channel->values_known = status == SN_OK;
    sn_inspect_fail(result, status, &err);
  }
}

static void look(inspect_result *result, const sn_open_options *options) {
  const inspect_request *request = result->request;
  sn_error err;
  char *root = NULL, *relative = NULL;
  sn_tree *tree = NULL;
  sn_status status = sn_tree_find_root(request->path, &root, &relative, &err);
  if (status == SN_OK) status = sn_tree_open(root, &tree, &err);
  if (status == SN_OK) status = sn_tree_open_recording(tree, relative, options, &result->recording, &err);
  sn_tree_close(tree);
  sn_free(root);
  sn_free(relative);
  sn_inspect_fail(result, status, &err);
  if (status != SN_OK) return;
  const sn_recording *r = result->recording;
  status = sn_alloc(&result->channels, r->n_channels, sizeof *result->channels, "channels", &err);
  if (status == SN_OK && request->channel != NULL && sn_recording_find_channel(r, request->channel) < 0)
    status = sn_fail_at(&err, SN_E_ARGUMENT, -1, -1, request->channel, "'%s' has no channel '%s'", request->path,
                        request->channel);
  sn_inspect_fail(result, status, &err);
  if (result->channels != NULL) read_channels(result);
  if (request->stats && r->vtable->verify != NULL) sn_inspect_fail(result, r->vtable->verify(r, &err), &err);
  sn_inspect_fail(result, sn_recording_annotations(r, request->annotator, &result->annotations, &err), &err);
}

/* The parts that were asked for; as JSON an object of their own. *any: there is one. */
static sn_status write_parts(const sn_args *args, const inspect_result *result, bool *any, sn_string *out, sn_error *err) {
  sn_json_writer json;
  bool as_json = result->request->json;
  *any = false;
  sn_json_writer_init(&json, out, 2);
  if (as_json) sn_json_begin_object(&json);
  for (int i = 0; PARTS[i].name != NULL; i++) {
    if (!sn_args_has(args, PARTS[i].name) || result->recording == NULL) continue;
    *any = true;
    if (as_json) sn_json_write_key(&json, PARTS[i].name);
    SN_TRY(PARTS[i].write(result->recording, result->request, as_json ? &json : NULL, as_json ? NULL : out, err));
  }
  if (!as_json) return SN_OK;
  sn_json_end_object(&json);
  return sn_json_writer_finish(&json, err);
}

/* The parts are made first, since one that fails must still reach "status", and joined to the end of the object. */
static sn_status write_report(const sn_args *args, inspect_result *result, sn_string *out, sn_error *err) {
  sn_string parts = {0};
  sn_json_writer json;
  bool any = false;
  sn_status status = write_parts(args, result, &any, &parts, err);
  sn_inspect_fail(result, status, err);
  any = any && status == SN_OK;
  if (result->request->json) {
    sn_json_writer_init(&json, out, 2);
    sn_json_begin_object(&json);
    sn_inspect_write_json(result, &json);
    sn_json_end_object(&json);
    SN_TRY_GOTO(sn_json_writer_finish(&json, err), done);
    if (any) {
      out->length -= 2; /* the closing line feed and brace */
      SN_TRY_GOTO(sn_string_append(out, ",", 1, err), done);
      SN_TRY_GOTO(sn_string_append(out, parts.data + 1, parts.length - 1, err), done);
    }
  } else {
    SN_TRY_GOTO(sn_inspect_write_text(result, out, err), done);
    if (any) SN_TRY_GOTO(sn_string_append(out, parts.data, parts.length, err), done);
  }
  status = SN_OK;
done:
  sn_string_free(&parts);
  return status;
}

static void release(inspect_result *result) {
  for (int64_t c = 0; result->channels != NULL && c < result->recording->n_channels; c++)
    sn_free(result->channels[c].values);
  sn_free(result->channels);
  sn_annotations_destroy(result->annotations);
  sn_recording_destroy(result->recording);
}

/* What would change nothing, or cannot be meant. */
static sn_status check_options(const sn_args *args, double rate_hz, sn_error *err) {
  const char *rate = sn_args_get(args, "assume-rate"), *extension = sn_path_extension(sn_args_positional(args, 0));
  if (rate != NULL && !(rate_hz > 0 && rate_hz <= 1e9))
    return sn_fail(err, SN_E_ARGUMENT, "--assume-rate %s: above 0 Hz, at most 1e9", rate);
  if (sn_args_has(args, "reference") && !sn_args_has(args, "beats"))
    return sn_fail(err, SN_E_ARGUMENT, "--reference %s: only matters with --beats", sn_args_get(args, "reference"));
  if (rate != NULL && !sn_equal_nocase(extension, ".edf") && !sn_equal_nocase(extension, ".bdf") && !sn_equal_nocase(extension, ".gz"))
    return sn_fail(err, SN_E_ARGUMENT, "--assume-rate %s: only EDF and BDF files can leave their rate open; leave it out", rate);
  return sn_unit_check(sn_args_get(args, "assume-unit"), "assume-unit", err);
}

static int run(const sn_args *args) {
  inspect_request request;
  inspect_result result = {.request = &request};
  sn_string out = {0};
  sn_error err = {0};
  if (parse_request(args, &request, &err) != SN_OK) {
    fprintf(stderr, "sonde inspect: %s\n", err.message);
    return 2;
  }
  sn_open_options options = {.tolerant = request.tolerant, .assume_unit = sn_args_get(args, "assume-unit"),
                             .allow_no_signal = true};
  if (sn_args_f64(args, "assume-rate", 0, &options.assume_rate_hz, &err) != SN_OK ||
      check_options(args, options.assume_rate_hz, &err) != SN_OK) {
    fprintf(stderr, "sonde inspect: %s\n", err.message);
    return 2;
  }
  look(&result, &options);
  sn_status status = write_report(args, &result, &out, &err);
  sn_inspect_fail(&result, status, &err);
  if (out.length > 0) fwrite(out.data, 1, (size_t)out.length, stdout); /* main looks whether it arrived */
  if (request.json) fputc('\n', stdout);
  if (result.status != SN_OK) fprintf(stderr, "sonde inspect: %s\n", result.error.message);
  int code = result.status == SN_OK ? 0 : 1;
  sn_string_free(&out);
  release(&result);
  return code;
}

int sn_command_inspect(int argc, char **argv);
int sn_command_inspect(int argc, char **argv) {
  sn_args *args = NULL;
  sn_error err;
  if (sn_args_parse(OPTIONS, "PATH", 1, 1, argc, argv, &args, &err) != SN_OK) {
    fprintf(stderr, "sonde inspect: %s\n", err.message);
    return 2;
  }
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "inspect", "PATH",
                       "What a reader sees in a recording: format, channels, units, rates, segments, annotations, problems.");
    sn_args_destroy(args);
    return 0;
  }
  int code = run(args);
  sn_args_destroy(args);
  return code;
}
