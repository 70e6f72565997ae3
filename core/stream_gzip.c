/* The decompressed view of a gzip stream (stream.h).
 *
 * HOW IT WORKS
 *
 * Two decoders.  The *frontier* goes from the beginning to the end, once and only forward, through zlib's gzip mode,
 * which checks every member's checksum and length; on its way it leaves access points.  The *roamer* serves what lies
 * behind the frontier: it goes on from where it stands, or starts at the last access point before the wanted byte.  An
 * access point is the place of a deflate block in the packed bytes (to the bit) with the 32 KiB of content before it, or
 * the beginning of a member, which needs none.  When the points become too many, every second one is dropped and the
 * distance doubled. */
#define ZLIB_CONST
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/stream.h"

enum {
  WINDOW = 32768,      /* how far back deflate may refer (RFC 1951) */
  INPUT = 1 << 15,
  SCRATCH = 1 << 15,
  MOST_POINTS = 128,
  TRAILER = 8,         /* checksum and length behind a member (RFC 1952) */
  GZIP_MODE = 15 + 16, /* zlib's window bits for a gzip member with its checks, and for bare deflate */
  RAW_MODE = -15
};

static const int64_t FIRST_SPAN = 1 << 20;

typedef struct access_point {
  int64_t in, out;      /* first whole packed byte still to be read; position in the content */
  int bits;             /* bits of the byte before `in` still to be read */
  unsigned char *window; /* the content before `out`; NULL: the beginning of a member */
  unsigned n_window;
} access_point;

typedef struct decoder {
  z_stream z;
  bool made;        /* z is initialised */
  bool raw;         /* in the middle of a member, without its header: the trailer is ours to step over */
  bool finished;    /* at the end of the content */
  int64_t in;       /* packed position of the next byte to be fetched */
  int64_t out;      /* content position of the next byte to come out */
  unsigned char input[INPUT];
} decoder;

typedef struct gzip_backend {
  sn_stream *packed;
  pthread_mutex_t lock;
  decoder frontier, roamer;
  bool roaming; /* the roamer stands somewhere */
  access_point points[MOST_POINTS];
  int64_t n_points, span;
  bool damaged; /* at frontier.out; what and where in `damage` */
  sn_error damage;
  unsigned char scratch[SCRATCH];
} gzip_backend;

/* --- one decoder ---------------------------------------------------------------------------------------------- */

static void *zlib_alloc(void *opaque, unsigned items, unsigned size) {
  void *memory;
  return sn_alloc(&memory, items, size, "zlib", NULL) == SN_OK ? memory : NULL;
}

static void zlib_free(void *opaque, void *memory) { sn_free(memory); }

/* Puts the decoder at packed byte `in`, in gzip mode at the beginning of a member or in raw mode inside one. */
static sn_status place(decoder *d, int64_t in, int64_t out, bool raw, sn_error *err) {
  int result = Z_OK;
  if (!d->made) {
    memset(&d->z, 0, sizeof d->z);
    d->z.zalloc = zlib_alloc;
    d->z.zfree = zlib_free;
    result = inflateInit2(&d->z, raw ? RAW_MODE : GZIP_MODE);
    d->made = result == Z_OK;
  } else {
    result = inflateReset2(&d->z, raw ? RAW_MODE : GZIP_MODE);
  }
  if (result != Z_OK) return sn_fail(err, SN_E_MEMORY, "out of memory for a decompressor");
  d->z.avail_in = 0;
  d->raw = raw;
  d->finished = false;
  d->in = in;
  d->out = out;
  return SN_OK;
}

static void drop(decoder *d) {
  if (d->made) inflateEnd(&d->z);
  d->made = false;
}

static int64_t packed_place(const decoder *d) { return d->in - (int64_t)d->z.avail_in; }

/* Fetches more packed bytes when there are none; *ended at the end of the packed stream. */
static sn_status refill(decoder *d, const sn_stream *packed, bool *ended, sn_error *err) {
  *ended = false;
  if (d->z.avail_in > 0) return SN_OK;
  int64_t n;
  sn_status status = sn_stream_read(packed, d->in, d->input, INPUT, &n, err);
  if (status != SN_OK && status != SN_END) return status;
  d->z.next_in = d->input;
  d->z.avail_in = (unsigned)n;
  d->in += n;
  *ended = n == 0;
  return SN_OK;
}

static sn_status corrupt(const sn_stream *packed, int64_t offset, const char *found, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, offset, -1, NULL, "%s: damaged gzip data at packed offset %lld: %s",
                    sn_stream_name(packed), (long long)offset, found);
}

/* Behind a member: the next one, or nothing but zeros up to the end. */
static sn_status next_member(decoder *d, const sn_stream *packed, sn_error *err) {
  int64_t at = packed_place(d) + (d->raw ? TRAILER : 0), n;
  unsigned char bytes[512];
  for (bool first = true;; first = false) {
    sn_status status = sn_stream_read(packed, at, bytes, sizeof bytes, &n, err);
    if (status != SN_OK && status != SN_END) return status;
    if (first && n >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B) return place(d, at, d->out, false, err);
    for (int64_t i = 0; i < n; i++) {
      if (bytes[i] != 0) return corrupt(packed, at + i, "expected a further member or the end", err);
    }
    at += n;
    if (status == SN_END) break;
  }
  d->finished = true;
  return SN_OK;
}

/* One step: up to `room` bytes into dst, *n of them written; possibly none, but then something else went forward. With
 * `stop_at_blocks` also ends between two deflate blocks. */
static sn_status step(decoder *d, const sn_stream *packed, unsigned char *dst, int64_t room, bool stop_at_blocks,
                      int64_t *n, sn_error *err) {
  bool ended;
  *n = 0;
  SN_TRY(refill(d, packed, &ended, err));
  d->z.next_out = dst;
  d->z.avail_out = room < INT_MAX ? (unsigned)room : INT_MAX;
  const unsigned before = d->z.avail_out;
  int result = inflate(&d->z, stop_at_blocks ? Z_BLOCK : Z_NO_FLUSH);
  *n = (int64_t)(before - d->z.avail_out);
  d->out += *n;
  switch (result) {
    case Z_OK: return SN_OK;
    case Z_STREAM_END: return next_member(d, packed, err);
    case Z_BUF_ERROR:
      /* zlib could do nothing: without input that is a file cut short, otherwise it merely wants more. */
      return ended ? corrupt(packed, d->in, "the file ends too early", err) : SN_OK;
    case Z_MEM_ERROR: return sn_fail(err, SN_E_MEMORY, "out of memory for a decompressor");
    case Z_NEED_DICT: return corrupt(packed, packed_place(d), "it asks for a dictionary", err);
    default: return corrupt(packed, packed_place(d), d->z.msg != NULL ? d->z.msg : "invalid data", err);
  }
}

/* --- access points -------------------------------------------------------------------------------------------- */

static void drop_points(gzip_backend *g) {
  for (int64_t i = 0; i < g->n_points; i++) sn_free(g->points[i].window);
  g->n_points = 0;
}

static void thin_out(gzip_backend *g) {
  int64_t kept = 0;
  for (int64_t i = 0; i < g->n_points; i++) {
    if (i % 2 == 0) g->points[kept++] = g->points[i];
    else sn_free(g->points[i].window);
  }
  g->n_points = kept;
  g->span *= 2;
}

/* Leaves a point where the frontier stands, if it is time for one and the place is fit: the beginning of a member
 * (nothing of it read), or between two blocks. */
static sn_status leave_point(gzip_backend *g, bool member_start, sn_error *err) {
  decoder *d = &g->frontier;
  const bool between_blocks = (d->z.data_type & 128) != 0 && (d->z.data_type & 64) == 0;
  if (d->finished || !(member_start || between_blocks)) return SN_OK;
  if (g->n_points > 0 && d->out - g->points[g->n_points - 1].out < g->span) return SN_OK;
  access_point p = {.in = packed_place(d), .out = d->out};
  if (!member_start) {
    SN_TRY(sn_alloc(&p.window, WINDOW, 1, "access point of a gzip stream", err));
    p.bits = d->z.data_type & 7;
    if (inflateGetDictionary(&d->z, p.window, &p.n_window) != Z_OK) {
      sn_free(p.window);
      return sn_fail(err, SN_E_MEMORY, "out of memory for an access point of a gzip stream");
    }
  }
  g->points[g->n_points++] = p;
  if (g->n_points == MOST_POINTS) thin_out(g);
  return SN_OK;
}

/* The roamer to the last point at or before `offset`, unless it stands as near already. */
static sn_status roam(gzip_backend *g, int64_t offset, sn_error *err) {
  int64_t i = g->n_points - 1;
  while (i > 0 && g->points[i].out > offset) i--;
  const access_point *p = &g->points[i];
  decoder *d = &g->roamer;
  if (g->roaming && d->out <= offset && d->out >= p->out) return SN_OK;
  g->roaming = false;
  SN_TRY(place(d, p->in, p->out, p->window != NULL, err));
  if (p->window != NULL) {
    if (p->bits > 0) {
      unsigned char byte;
      SN_TRY(sn_stream_read_exact(g->packed, p->in - 1, &byte, 1, err));
      inflatePrime(&d->z, p->bits, byte >> (8 - p->bits));
    }
    if (p->n_window > 0 && inflateSetDictionary(&d->z, p->window, p->n_window) != Z_OK)
      return sn_fail(err, SN_E_MEMORY, "out of memory for a decompressor");
  }
  g->roaming = true;
  return SN_OK;
}

/* --- reading -------------------------------------------------------------------------------------------------- */

/* [offset, offset + n), all of it behind the frontier, through the roamer. */
static sn_status read_behind(gzip_backend *g, int64_t offset, unsigned char *dst, int64_t n, int64_t *n_read,
                             sn_error *err) {
  decoder *d = &g->roamer;
  sn_status status = roam(g, offset, err);
  while (status == SN_OK && *n_read < n) {
    const int64_t wanted = offset + *n_read;
    int64_t got;
    if (d->out < wanted) { /* on the way */
      const int64_t room = wanted - d->out < SCRATCH ? wanted - d->out : SCRATCH;
      status = step(d, g->packed, g->scratch, room, false, &got, err);
    } else {
      status = step(d, g->packed, dst + *n_read, n - *n_read, false, &got, err);
      *n_read += got;
    }
    if (status == SN_OK && d->finished && *n_read < n)
      status = corrupt(g->packed, packed_place(d), "it ends earlier than before: the file was changed", err);
  }
  if (status != SN_OK) g->roaming = false;
  return status;
}

/* The frontier after an error: damage is remembered; where only memory was short, it starts afresh next time, because
 * zlib does not go on after that. */
static sn_status frontier_failed(gzip_backend *g, sn_status status, const sn_error *found) {
  if (status == SN_E_CORRUPT) {
    g->damaged = true;
    g->damage = *found;
  } else if (status == SN_E_MEMORY) {
    drop(&g->frontier);
    drop_points(g);
    g->roaming = false;
    g->frontier.out = 0;
    g->frontier.finished = false;
    g->span = FIRST_SPAN;
  }
  return status;
}

/* Takes the frontier to the first of: the content's end, offset + n, an error. Bytes of [offset, offset + n) are kept. */
static sn_status read_ahead(gzip_backend *g, int64_t offset, unsigned char *dst, int64_t n, int64_t *n_read,
                            sn_error *err) {
  decoder *d = &g->frontier;
  sn_error found;
  sn_status status = SN_OK;
  sn_error_clear(&found);
  if (!d->made) {
    status = place(d, 0, 0, false, &found);
    if (status == SN_OK) status = leave_point(g, true, &found);
  }
  while (status == SN_OK && !d->finished && *n_read < n && !g->damaged) {
    const int64_t wanted = offset + *n_read, ahead = wanted - d->out;
    int64_t got;
    const bool keep = ahead == 0;
    status = step(d, g->packed, keep ? dst + *n_read : g->scratch,
                  keep ? n - *n_read : ahead < SCRATCH ? ahead : SCRATCH, true, &got, &found);
    if (keep) *n_read += got;
    if (status == SN_OK) status = leave_point(g, d->z.total_in == 0 && !d->raw, &found);
  }
  if (status != SN_OK) frontier_failed(g, status, &found);
  if (status == SN_OK && g->damaged && *n_read < n) {
    found = g->damage;
    status = SN_E_CORRUPT;
  }
  if (status != SN_OK && err != NULL) *err = found;
  return status;
}

static sn_status gzip_read_at(void *self, int64_t offset, void *dst, int64_t n, int64_t *n_read, sn_error *err) {
  gzip_backend *g = self;
  sn_status status = SN_OK;
  *n_read = 0;
  pthread_mutex_lock(&g->lock);
  const int64_t behind = g->frontier.out - offset;
  if (behind > 0) status = read_behind(g, offset, dst, behind < n ? behind : n, n_read, err);
  if (status == SN_OK && *n_read < n) status = read_ahead(g, offset, dst, n, n_read, err);
  pthread_mutex_unlock(&g->lock);
  return status;
}

static int64_t gzip_size(void *self) {
  gzip_backend *g = self;
  char byte;
  int64_t n;
  sn_status status = gzip_read_at(self, INT64_MAX - 1, &byte, 1, &n, NULL);
  return status == SN_OK ? g->frontier.out : -1; /* the frontier has come to its end and stays there */
}

static void gzip_release(gzip_backend *g) {
  drop(&g->frontier);
  drop(&g->roamer);
  drop_points(g);
  pthread_mutex_destroy(&g->lock);
  sn_free(g);
}

static void gzip_close(void *self) {
  gzip_backend *g = self;
  sn_stream_close(g->packed);
  gzip_release(g);
}

static const sn_stream_vtable GZIP_VTABLE = {gzip_read_at, gzip_size, gzip_close};

sn_status sn_stream_open_gzip(sn_stream *packed, sn_stream **out, sn_error *err) {
  unsigned char magic[3] = {0, 0, 0};
  int64_t n;
  sn_status status = sn_stream_read(packed, 0, magic, 3, &n, err);
  if (status != SN_OK && status != SN_END) return status;
  if (magic[0] != 0x1F || magic[1] != 0x8B || magic[2] != 8)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "%s: expected gzip data (1F 8B 08), found %02X %02X %02X",
                      sn_stream_name(packed), magic[0], magic[1], magic[2]);
  gzip_backend *g;
  SN_TRY(sn_alloc(&g, 1, sizeof *g, "gzip stream", err));
  g->packed = packed;
  g->span = FIRST_SPAN;
  pthread_mutex_init(&g->lock, NULL);
  status = sn_stream_create(&GZIP_VTABLE, g, sn_stream_name(packed), out, err);
  if (status != SN_OK) gzip_release(g);
  return status;
}
