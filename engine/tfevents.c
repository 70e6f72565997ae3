#include "engine/tfevents.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"

struct sn_tfevents {
  FILE *file;
  char *path;
};

uint32_t sn_crc32c(const void *data, int64_t n) {
  const uint8_t *bytes = data;
  uint32_t crc = 0xFFFFFFFFu;
  for (int64_t i = 0; i < n; i++) {
    crc ^= bytes[i];
    for (int k = 0; k < 8; k++) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
  }
  return ~crc;
}

static uint32_t masked_crc(const void *data, int64_t n) {
  uint32_t crc = sn_crc32c(data, n);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

/* The few protobuf pieces that an Event needs. */
typedef struct message {
  uint8_t bytes[512];
  int64_t n;
} message;

static void put_varint(message *m, uint64_t value) {
  while (value >= 0x80) {
    m->bytes[m->n++] = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  m->bytes[m->n++] = (uint8_t)value;
}

static void put_fixed(message *m, int field, int wire, const void *value, int64_t n) {
  put_varint(m, (uint64_t)(field << 3 | wire));
  memcpy(m->bytes + m->n, value, (size_t)n);
  m->n += n;
}

static void put_bytes(message *m, int field, const void *value, int64_t n) {
  put_varint(m, (uint64_t)(field << 3 | 2));
  put_varint(m, (uint64_t)n);
  memcpy(m->bytes + m->n, value, (size_t)n);
  m->n += n;
}

static sn_status write_record(sn_tfevents *events, const message *m, sn_error *err) {
  uint64_t length = (uint64_t)m->n;
  uint32_t length_crc = masked_crc(&length, 8), data_crc = masked_crc(m->bytes, m->n);
  if (fwrite(&length, 8, 1, events->file) != 1 || fwrite(&length_crc, 4, 1, events->file) != 1 ||
      fwrite(m->bytes, 1, (size_t)m->n, events->file) != (size_t)m->n || fwrite(&data_crc, 4, 1, events->file) != 1)
    return sn_fail(err, SN_E_IO, "%s: cannot write: %s", events->path, strerror(errno));
  return SN_OK;
}

static void begin_event(message *m, int64_t step) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  double wall = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  m->n = 0;
  put_fixed(m, 1, 1, &wall, 8);
  put_varint(m, 2 << 3);
  put_varint(m, (uint64_t)step);
}

sn_status sn_tfevents_open(const char *path, int64_t length, sn_tfevents **out, sn_error *err) {
  sn_tfevents *e = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&e, 1, sizeof *e, "event file", err));
  SN_TRY_GOTO(sn_strdup(&e->path, path, "event file", err), fail);
  if (length > 0 && truncate(path, length) != 0) {
    status = sn_fail(err, SN_E_IO, "%s: cannot cut to %lld bytes: %s", path, (long long)length, strerror(errno));
    goto fail;
  }
  e->file = fopen(path, length > 0 ? "ab" : "wb");
  if (e->file == NULL) {
    status = sn_fail(err, SN_E_IO, "%s: cannot open for writing: %s", path, strerror(errno));
    goto fail;
  }
  if (length == 0) {
    static const char VERSION[] = "brain.Event:2";
    message m;
    begin_event(&m, 0);
    put_bytes(&m, 3, VERSION, (int64_t)sizeof VERSION - 1);
    SN_TRY_GOTO(write_record(e, &m, err), fail);
  }
  *out = e;
  return SN_OK;
fail:
  sn_tfevents_close(e);
  return status;
}

sn_status sn_tfevents_scalar(sn_tfevents *events, int64_t step, const char *tag, double value, sn_error *err) {
  message v = {.n = 0}, summary = {.n = 0}, event;
  float simple = (float)value;
  int64_t n = (int64_t)strlen(tag);
  if (n > 200) return sn_fail(err, SN_E_ARGUMENT, "event tag too long: %.40s...", tag);
  put_bytes(&v, 1, tag, n);
  put_fixed(&v, 2, 5, &simple, 4);
  put_bytes(&summary, 1, v.bytes, v.n);
  begin_event(&event, step);
  put_bytes(&event, 5, summary.bytes, summary.n);
  return write_record(events, &event, err);
}

sn_status sn_tfevents_flush(sn_tfevents *events, int64_t *length, sn_error *err) {
  if (fflush(events->file) != 0) return sn_fail(err, SN_E_IO, "%s: cannot write: %s", events->path, strerror(errno));
  *length = (int64_t)ftell(events->file);
  return SN_OK;
}

void sn_tfevents_close(sn_tfevents *events) {
  if (events == NULL) return;
  if (events->file != NULL) fclose(events->file);
  sn_free(events->path);
  sn_free(events);
}
