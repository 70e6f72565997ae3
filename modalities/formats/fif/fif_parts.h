/* Between the files of the FIF reader: tags and blocks, the measurement's description, data buffers. Not for others. */
#ifndef SN_MODALITIES_FIF_PARTS_H
#define SN_MODALITIES_FIF_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stream.h"
#include "modalities/formats/big_endian.h"
#include "modalities/formats/fif/fif.h"
#include "modalities/formats/interleaved/interleaved.h"
#include "modalities/recording.h"

/* Kinds of tags, kinds of blocks and types of values, as the format numbers them. */
enum {
  FIFF_FILE_ID = 100, FIFF_BLOCK_ID = 103, FIFF_BLOCK_START = 104, FIFF_BLOCK_END = 105, FIFF_NOP = 108,
  FIFF_REF_ROLE = 115, FIFF_REF_FILE_NUM = 117, FIFF_REF_FILE_NAME = 118,
  FIFF_NCHAN = 200, FIFF_SFREQ = 201, FIFF_CH_INFO = 203, FIFF_MEAS_DATE = 204, FIFF_COMMENT = 206,
  FIFF_FIRST_SAMPLE = 208, FIFF_DIG_POINT = 213, FIFF_LOWPASS = 219, FIFF_COORD_TRANS = 222, FIFF_HIGHPASS = 223,
  FIFF_NAME = 233, FIFF_LINE_FREQ = 235,
  FIFF_CH_SCAN_NO = 250, FIFF_CH_KIND = 252, FIFF_CH_RANGE = 253, FIFF_CH_CAL = 254, FIFF_CH_LOC = 255,
  FIFF_CH_UNIT = 256, FIFF_CH_UNIT_MUL = 257, FIFF_CH_DACQ_NAME = 258, FIFF_CH_COIL_TYPE = 350,
  FIFF_CH_COORD_FRAME = 351,
  FIFF_DATA_BUFFER = 300, FIFF_DATA_SKIP = 301, FIFF_DATA_SKIP_SAMP = 303,
  FIFF_SUBJ_ID = 400, FIFF_SUBJ_FIRST_NAME = 401, FIFF_SUBJ_LAST_NAME = 403, FIFF_SUBJ_BIRTH_DAY = 404, FIFF_SUBJ_SEX = 405, FIFF_SUBJ_HIS_ID = 410,
  FIFF_MNE_CH_NAME_LIST = 3507, FIFF_MNE_PROJ_ITEM_ACTIVE = 3560, FIFF_MNE_CUSTOM_REF = 3567,
  FIFF_MNE_BASELINE_MIN = 3568, FIFF_MNE_BASELINE_MAX = 3569, FIFF_MNE_ANNOTATION_CHANNELS = 3801
};
enum {
  FIFFB_FILE = 0, /* ours: what stands in no block */
  FIFFB_MEAS = 100, FIFFB_MEAS_INFO = 101, FIFFB_RAW_DATA = 102, FIFFB_PROCESSED_DATA = 103, FIFFB_EVOKED = 104,
  FIFFB_SUBJECT = 106, FIFFB_ISOTRAK = 107, FIFFB_HPI_RESULT = 109, FIFFB_CONTINUOUS_DATA = 112, FIFFB_CH_INFO = 113,
  FIFFB_REF = 118, FIFFB_IAS_RAW_DATA = 119, FIFFB_MRI = 200, FIFFB_BEM = 310, FIFFB_PROJ = 313, FIFFB_PROJ_ITEM = 314,
  FIFFB_MNE = 350, FIFFB_MNE_SOURCE_SPACE = 351, FIFFB_MNE_FORWARD_SOLUTION = 352, FIFFB_MNE_COV = 355,
  FIFFB_MNE_INVERSE_SOLUTION = 356, FIFFB_MNE_BAD_CHANNELS = 359, FIFFB_MNE_EVENTS = 361, FIFFB_MNE_CTF_COMP = 370,
  FIFFB_MNE_EPOCHS = 373, FIFFB_MNE_ICA = 374, FIFFB_MNE_ANNOTATIONS = 3810
};
enum {
  FIFFT_SHORT = 2, FIFFT_INT = 3, FIFFT_FLOAT = 4, FIFFT_DOUBLE = 5, FIFFT_JULIAN = 6, FIFFT_STRING = 10,
  FIFFT_DAU_PACK16 = 16, FIFFT_COMPLEX_FLOAT = 20, FIFFT_COMPLEX_DOUBLE = 21, FIFFT_OLD_PACK = 23,
  FIFFT_CH_INFO_STRUCT = 30, FIFFT_ID_STRUCT = 31, FIFFT_DIG_POINT_STRUCT = 33, FIFFT_COORD_TRANS_STRUCT = 35
};
enum { FIFFV_ROLE_PREV_FILE = 1, FIFFV_ROLE_NEXT_FILE = 2 };
enum { FIFFV_COORD_DEVICE = 1, FIFFV_COORD_HEAD = 4, FIFFV_COORD_CTF_HEAD = 1004 };

enum { FIF_TAG_HEADER = 16, FIF_DEEPEST = 32 };

typedef struct fif_tag {
  int32_t kind, type, size;
  int32_t cut;        /* 1: the file ends inside its content (tolerant only) */
  int64_t offset;     /* of the content */
  int64_t block;      /* index of the innermost block */
} fif_tag;

typedef struct fif_block {
  int32_t kind;
  int64_t parent;     /* -1: the file itself, which is block 0 */
  int64_t first, end; /* its tags and those of its blocks: tags[first, end) */
} fif_block;

typedef struct fif_tree {
  const sn_stream *stream; /* borrowed */
  int64_t n_tags, n_blocks;
  fif_tag *tags;           /* in the order of the walk; block starts and ends are not listed */
  fif_block *blocks;       /* a block stands behind its parent */
  int64_t tag_room, block_room;
  bool truncated;          /* the walk ended before the end mark, or in a block (tolerant only) */
} fif_tree;

/* Walks the tags from the first by their pointers, which may lead backwards. SN_E_FORMAT when the file does not begin with
 * a file id, SN_E_CORRUPT (offset) for negative sizes, tags that lead in a circle or overlap, a file that ends inside a
 * tag, blocks that do not match. tolerant: what stands before a cut. */
SN_MUST_CHECK sn_status sn_fif_tree_read(const sn_stream *stream, bool tolerant, fif_tree *tree, sn_error *err);
void sn_fif_tree_free(fif_tree *tree);

/* The next block of this kind at any depth inside `parent`, behind block `after` (-1: the first); -1: none. */
int64_t sn_fif_find_block(const fif_tree *tree, int64_t parent, int32_t kind, int64_t after);
/* The next tag of this kind that stands directly in `block`, behind `after` (NULL: the first); NULL: none. kind 0: any. */
const fif_tag *sn_fif_find_tag(const fif_tree *tree, int64_t block, int32_t kind, const fif_tag *after);

/* Content of a tag. SN_E_CORRUPT with the offset when type or size is another. */
SN_MUST_CHECK sn_status sn_fif_read_i32(const fif_tree *tree, const fif_tag *tag, int32_t *value, sn_error *err);
SN_MUST_CHECK sn_status sn_fif_read_number(const fif_tree *tree, const fif_tag *tag, double *value, sn_error *err);
SN_MUST_CHECK sn_status sn_fif_read_bytes(const fif_tree *tree, const fif_tag *tag, uint8_t *bytes, int64_t n, sn_error *err);
/* UTF-8, ends at the first NUL, trimmed; sn_free. */
SN_MUST_CHECK sn_status sn_fif_read_text(const fif_tree *tree, const fif_tag *tag, char **text, sn_error *err);
/* Cuts the next name off a list with ':' between (the text "{COLON}" stands for one inside a name); NULL: no more. */
char *sn_fif_next_name(char **list);

/* y = R x + t of a COORD_TRANS. */
typedef struct fif_transform {
  int32_t from, to;
  double rotation[9], translation[3];
} fif_transform;

/* What MEAS_INFO tells, put into the recording's channels, rate, subject, line_hz, reference and notes. */
typedef struct fif_info {
  int64_t n_channels;
  double *factors;         /* (n_channels) value in the channel's unit = stored number * factor */
  bool has_date;
  int64_t date_s, date_us; /* of the measurement, since 1970 in UTC */
} fif_info;
SN_MUST_CHECK sn_status sn_fif_info_read(const fif_tree *tree, int64_t meas, sn_recording *r, fif_info *info, sn_error *err);
void sn_fif_info_free(fif_info *info);

/* Annotations stored in the file (FIFFB_MNE_ANNOTATIONS), appended; times from the recording's first sample, which is
 * sample `first_sample` of the measurement. What lies outside [0, duration_s] is cut off or left out, with a warning. */
SN_MUST_CHECK sn_status sn_fif_annotations_read(const fif_tree *tree, const fif_info *info, const sn_recording *r,
                                                int64_t first_sample, double duration_s, sn_annotations *list,
                                                sn_error *err);
/* Whether there are any. */
bool sn_fif_has_annotations(const fif_tree *tree);

#endif
