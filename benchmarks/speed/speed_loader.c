/* The loader alone, and the start of the command. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/speed/speed_families.h"

sn_status sn_speed_loader(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err) {
  sn_speed_trainer t;
  sn_speed_times times = {0};
  int64_t samples = 0, tokens = 0;
  sn_status status;
  SN_TRY_GOTO(sn_speed_trainer_open(&t, options, "vit_t", "auto", setting, 1, err), done);
  double start = 0, last = sn_speed_now_ms(false);
  /* The first steps come from what was read ahead, and open every file. */
  for (int64_t n = -8; n < 3 || sn_speed_now_ms(false) - start < 1e3 * options->seconds; n++) {
    sn_step *step;
    SN_TRY_GOTO(sn_loader_next(t.loader, &step, err), done);
    const double now = sn_speed_now_ms(false);
    if (n == 0) start = last;
    if (n >= 0) {
      sn_speed_add(&times, now - last);
      samples += step->n_samples;
      tokens += step->packs[0].batch->n_tokens;
    }
    last = now;
    sn_step_destroy(t.loader, step);
  }
  const double seconds = 1e-3 * (last - start);
  row->n_threads = 1;
  sn_speed_put(row, "ms", sn_speed_median(&times));
  sn_speed_put(row, "samples_per_s", (double)samples / seconds);
  sn_speed_put(row, "tok_per_s", (double)tokens / seconds);
  sn_speed_put(row, "mb_per_s", 1e-6 * 4 * (double)(tokens * t.source->patch_size) / seconds);
done:
  sn_speed_trainer_close(&t);
  return status;
}

/* --- the start ------------------------------------------------------------------------------------------------------ */

/* Starts `sonde pretrain` with standard error in a pipe. */
static sn_status start_command(const sn_speed_options *options, const char *preset, const char *run, int *from, pid_t *child,
                               sn_error *err) {
  int ends[2];
  if (pipe(ends) != 0) return sn_fail(err, SN_E_IO, "pipe: %s", strerror(errno));
  *child = fork();
  if (*child < 0) {
    close(ends[0]);
    close(ends[1]);
    return sn_fail(err, SN_E_IO, "fork: %s", strerror(errno));
  }
  if (*child == 0) {
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 0);
    dup2(nothing, 1);
    dup2(ends[1], 2);
    char threads[48];
    snprintf(threads, sizeof threads, "train.threads=%d", options->n_threads);
    execl(options->command, options->command, "pretrain", "--preset", preset, "--data", "synthetic", "--out", run, "--set",
          "train.steps=2", "--set", "train.pack_tokens=6400", "--set", threads, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  *from = ends[0];
  return SN_OK;
}

/* Reads until the line of the first step. */
static bool read_first_step(int from) {
  char text[65536];
  size_t n = 0;
  while (n + 1 < sizeof text) {
    const ssize_t got = read(from, text + n, sizeof text - 1 - n);
    if (got <= 0) return false;
    n += (size_t)got;
    text[n] = '\0';
    if (strstr(text, "step 1/") != NULL) return true;
  }
  return false;
}

sn_status sn_speed_start(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err) {
  enum { STARTS = 5 };
  sn_speed_times times = {0};
  for (int i = 0; i < STARTS; i++) {
    char run[512];
    int from = -1, ended;
    pid_t child = -1;
    snprintf(run, sizeof run, "%s/run-%d", options->folder, i);
    const double start = sn_speed_now_ms(false);
    SN_TRY(start_command(options, setting, run, &from, &child, err));
    const bool seen = read_first_step(from);
    const double ms = sn_speed_now_ms(false) - start;
    char rest[4096];
    while (read(from, rest, sizeof rest) > 0) continue;
    close(from);
    if (waitpid(child, &ended, 0) < 0) return sn_fail(err, SN_E_IO, "waitpid: %s", strerror(errno));
    if (!seen || !WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
      return sn_fail(err, SN_E_STATE, "%s pretrain --preset %s did not come to its first step and a clean end",
                     options->command, setting);
    sn_speed_add(&times, ms);
  }
  row->n_threads = options->n_threads;
  sn_speed_put(row, "ms", sn_speed_best(&times));
  sn_speed_put(row, "ms_median", sn_speed_median(&times));
  return SN_OK;
}
