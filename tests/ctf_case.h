/* A CTF data set made by hand: 9 channels, 3 trials of 6 samples at 1200 Hz, the third in a file of its own and 30 samples after
 * the second. tests/golden/make_ctf.py writes the same bytes on its own. */
#ifndef SN_TESTS_CTF_CASE_H
#define SN_TESTS_CTF_CASE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "put_bytes.h"

enum { CTF_CHANNELS = 9, CTF_SAMPLES = 6, CTF_N_TRIALS = 3, CTF_DESCRIPTION = 4, CTF_FILTERS = 1844 + CTF_DESCRIPTION,
       CTF_NAMES = CTF_FILTERS + 2 + 18 + 34, CTF_RECORDS = CTF_NAMES + 32 * CTF_CHANNELS, CTF_COEFFICIENTS = CTF_RECORDS + 1328 * CTF_CHANNELS, CTF_RES4 = CTF_COEFFICIENTS + 2 + 2 * 1992,
       CTF_TRIAL = 4 * CTF_SAMPLES * CTF_CHANNELS, CTF_GAP = 30 };

enum { CTF_FILE_RES4, CTF_FILE_MEG4, CTF_FILE_MEG4_1, CTF_FILE_HC, CTF_FILE_EEG, CTF_FILE_BAD, CTF_FILE_MARKERS, CTF_FILE_SEGMENTS, CTF_FILES };

static const char *const CTF_FILE_NAMES[CTF_FILES] = {"x.res4", "x.meg4", "x.1_meg4", "x.hc", "x.eeg", "BadChannels", "MarkerFile.mrk", "bad.segments"};

typedef struct ctf_case {
  uint8_t res4[CTF_RES4], meg4[8 + 2 * CTF_TRIAL], meg4_1[8 + CTF_TRIAL];
  char hc[2048], eeg[128], bad[32], markers[1024], segments[64];
} ctf_case;

static inline const void *ctf_case_file(const ctf_case *c, int i, int64_t *n) {
  const void *data[CTF_FILES] = {c->res4, c->meg4, c->meg4_1, c->hc, c->eeg, c->bad, c->markers, c->segments};
  const int64_t sizes[CTF_FILES] = {sizeof c->res4, sizeof c->meg4, sizeof c->meg4_1, (int64_t)strlen(c->hc), (int64_t)strlen(c->eeg),
                                    (int64_t)strlen(c->bad), (int64_t)strlen(c->markers), (int64_t)strlen(c->segments)};
  *n = sizes[i];
  return data[i];
}

/* From the dewar to the head, cm: a rotation of whole thirds and a shift. */
static inline void ctf_case_to_head(const double *p, bool move, double *out) {
  static const double R[3][3] = {{2, -1, 2}, {2, 2, -1}, {-1, 2, 2}}, SHIFT[3] = {1, -2, 20};
  for (int i = 0; i < 3; i++) out[i] = (R[i][0] * p[0] + R[i][1] * p[1] + R[i][2] * p[2]) / 3 + (move ? SHIFT[i] : 0);
}

static inline void ctf_case_coil(uint8_t *record, int coil, const double *position, const double *direction, bool head) {
  double p[3], d[3];
  ctf_case_to_head(position, true, p);
  ctf_case_to_head(direction, false, d);
  for (int i = 0; i < 3; i++) {
    put_be_f64(record + 48 + 80 * coil + 8 * i, position[i]);
    put_be_f64(record + 48 + 80 * coil + 32 + 8 * i, direction[i]);
    if (!head) continue;
    put_be_f64(record + 688 + 80 * coil + 8 * i, p[i]);
    put_be_f64(record + 688 + 80 * coil + 32 + 8 * i, d[i]);
  }
}

static inline void ctf_case_channels(ctf_case *c) {
  static const struct {
    const char *name;
    int type, coils;
    double proper, q, io, position[2][3], direction[3];
  } CHANNELS[CTF_CHANNELS] = {
      {"MLC11-1609", 5, 2, -1e9, 1048576, 1, {{-4, 3, 8}, {-4, 3, 13}}, {0, 0, 1}},
      {"MRC12-1609", 5, 2, 2e9, 1048576, 1, {{4, 3, 8}, {7, 3, 12}}, {0.6, 0, 0.8}},
      {"BG1-1609", 0, 1, 1e8, 1048576, 1, {{1, 2, 20}}, {0, 1, 0}},
      {"Q11-1609", 1, 2, -1e9, 1048576, 1, {{2, 0, 22}, {2, 4, 22}}, {1, 0, 0}},
      {"P12-1609", 1, 2, -1e9, 1048576, 1, {{0, 1, 24}, {0, 1, 28}}, {0, 0, 1}},
      {"Cz-1609", 9, 1, 1, 4e6, 1, {{3, 4, 9}}, {0, 0, 0}},
      {"UPPT001", 11, 0, 1, 1, 1, {{0}}, {0}},
      {"SCLK01-177", 17, 0, 1, 12000, 1, {{0}}, {0}},
      {"UADC001-1609", 18, 0, 1, 1e5, 1, {{0}}, {0}}};
  for (int i = 0; i < CTF_CHANNELS; i++) {
    uint8_t *r = c->res4 + CTF_RECORDS + 1328 * i;
    memcpy(c->res4 + CTF_NAMES + 32 * i, CHANNELS[i].name, strlen(CHANNELS[i].name));
    put_be16(r, CHANNELS[i].type);
    put_be_f64(r + 8, CHANNELS[i].proper);
    put_be_f64(r + 16, CHANNELS[i].q);
    put_be_f64(r + 24, CHANNELS[i].io);
    put_be16(r + 40, CHANNELS[i].coils);
    put_be16(r + 42, CHANNELS[i].type == 5 ? 3 : 0);
    for (int k = 0; k < CHANNELS[i].coils; k++) ctf_case_coil(r, k, CHANNELS[i].position[k], CHANNELS[i].direction, CHANNELS[i].type != 9);
  }
}

/* Of the third-order gradiometer; this reader does not look at them, MNE wants some. */
static inline void ctf_case_coefficients(ctf_case *c) {
  put_be16(c->res4 + CTF_COEFFICIENTS, 2);
  for (int i = 0; i < 2; i++) {
    uint8_t *r = c->res4 + CTF_COEFFICIENTS + 2 + 1992 * i;
    memcpy(r, i == 0 ? "MLC11-1609" : "MRC12-1609", 10);
    memcpy(r + 32, "G3BR", 4);
    put_be16(r + 40, 1);
    memcpy(r + 42, "BG1-1609", 8);
    put_be_f64(r + 42 + 31 * 50, 0.5);
  }
}

static inline int32_t ctf_case_sample(int channel, int trial, int k) {
  static const int TRIGGER[CTF_N_TRIALS * CTF_SAMPLES] = {0, 0, 4, 4, 0, 0, 2, 0, 0, 6, 6, 6, 1, 0, 0, 0, 3, 3};
  const int at = trial * CTF_SAMPLES + k;
  if (channel == 6) return TRIGGER[at];
  if (channel == 7) return 120000 + 10 * (at + (trial == 2 ? CTF_GAP : 0));
  return (channel + 1) * 1000003 * (k - 2) + trial * 70000 + channel;
}

static inline void ctf_case_data(ctf_case *c) {
  memcpy(c->meg4, "MEG41CP", 8);
  memcpy(c->meg4_1, "MEG41CP", 8);
  for (int t = 0; t < CTF_N_TRIALS; t++)
    for (int i = 0; i < CTF_CHANNELS; i++)
      for (int k = 0; k < CTF_SAMPLES; k++)
        put_be32((t < 2 ? c->meg4 + 8 + CTF_TRIAL * t : c->meg4_1 + 8) + 4 * (CTF_SAMPLES * i + k), ctf_case_sample(i, t, k));
}

static inline void ctf_case_hc(ctf_case *c) {
  static const char *const COILS[3] = {"nasion", "left ear", "right ear"};
  static const char *const SETS[3][2] = {{"standard", "dewar"}, {"measured", "dewar"}, {"measured", "head"}};
  static const double HEAD[3][3] = {{10, 0, 0}, {0.5, 7.5, 0}, {-0.5, -7.5, 0}};
  static const double BACK[3][3] = {{2, 2, -1}, {-1, 2, 2}, {2, -1, 2}}, SHIFT[3] = {1, -2, 20};
  size_t used = 0;
  for (int set = 0; set < 3; set++)
    for (int k = 0; k < 3; k++) {
      double p[3];
      for (int i = 0; i < 3; i++) {
        p[i] = HEAD[k][i];
        if (set < 2) p[i] = (BACK[i][0] * (HEAD[k][0] - SHIFT[0]) + BACK[i][1] * (HEAD[k][1] - SHIFT[1]) + BACK[i][2] * (HEAD[k][2] - SHIFT[2])) / 3;
        if (set == 0) p[i] += 1;
      }
      used += (size_t)snprintf(c->hc + used, sizeof c->hc - used, "%s %s coil position relative to %s (cm):\n\tx = %.8f\n\ty = %.8f\n\tz = %.8f\n",
                               SETS[set][0], COILS[k], SETS[set][1], p[0], p[1], p[2]);
    }
}

static inline void ctf_case_make(ctf_case *c) {
  memset(c, 0, sizeof *c);
  uint8_t *b = c->res4;
  memcpy(b, "MEG42RS", 8);
  memcpy(b + 778, "14:05:09", 8);
  memcpy(b + 1033, "11-Nov-2008", 11);
  put_be32(b + 1288, CTF_SAMPLES);
  put_be16(b + 1292, CTF_CHANNELS);
  put_be_f64(b + 1296, 1200);
  put_be_f64(b + 1304, CTF_SAMPLES / 1200.0);
  put_be16(b + 1312, CTF_N_TRIALS);
  put_be32(b + 1316, 2);
  memcpy(b + 1392, "Doe, Jane", 9);
  memcpy(b + 1712, "S017", 4);
  memcpy(b + 1744, "Ms Operator", 11);
  put_be32(b + 1836, CTF_DESCRIPTION);
  memcpy(b + 1844, "run", 3);
  put_be16(b + CTF_FILTERS, 2);
  put_be_f64(b + CTF_FILTERS + 2, 300);
  put_be32(b + CTF_FILTERS + 14, 1);
  put_be_f64(b + CTF_FILTERS + 20, 0.5);
  put_be32(b + CTF_FILTERS + 32, 2);
  put_be16(b + CTF_FILTERS + 36, 2);
  ctf_case_channels(c);
  ctf_case_coefficients(c);
  ctf_case_data(c);
  ctf_case_hc(c);
  snprintf(c->eeg, sizeof c->eeg, "1\tCz-1609\t1.5\t-0.5\t12.25\n2 nasion 10 0 0\n");
  snprintf(c->bad, sizeof c->bad, "MRC12\n");
  snprintf(c->segments, sizeof c->segments, "1\t0.0005\t0.0015\n");
  snprintf(c->markers, sizeof c->markers,
           "PATH OF DATASET:\n/data/Doe_Jane.ds\n\n\nNUMBER OF MARKERS:\n2\n\n\nCLASSGROUPID:\n+3\nNAME:\nvisual\nCOMMENT:\n\nCOLOR:\nblue\n"
           "EDITABLE:\nYes\nCLASSID:\n+1\nNUMBER OF SAMPLES:\n2\nLIST OF SAMPLES:\nTRIAL NUMBER\t\tTIME FROM SYNC POINT (in seconds)\n"
           "                  +0\t\t\t\t     +0.0012\n                  +2\t\t\t\t     -0.0016\n\n\nCLASSGROUPID:\n+3\nNAME:\nbutton\n"
           "COMMENT:\n\nNUMBER OF SAMPLES:\n1\nLIST OF SAMPLES:\nTRIAL NUMBER\t\tTIME FROM SYNC POINT (in seconds)\n"
           "                  +1\t\t\t\t     +0\n\n\n");
}

#endif
