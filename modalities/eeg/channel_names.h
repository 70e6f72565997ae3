/* Names of EEG channels: what a file's label says, in one spelling, with a record of what was done to it (specs S1).
 *
 * STEPS, in this order:
 *   1. blanks at both ends go, runs of blanks become one; trailing dots (EEGMMI: "Fc5.", "Cz..") go
 *   2. a type in front ("EEG ", "POL ", "EEG-", ...) is taken as the kind and dropped; other types (EOG, ECG, EMG,
 *      Resp, ...) give the kind but stay in the name unless what follows says the same ("ECG ECG" -> "ECG")
 *   3. a reference behind a hyphen that is no electrode ("-REF", "-LE", "-AVG", "-A1A2", ...) is dropped and kept as
 *      `reference`
 *   4. "A-B" with two parts left is a bipolar pair: both parts go through 5; it is never taken for A alone
 *   5. electrodes in the spelling of layout.h whatever the case (FP1, fp1 -> Fp1); T3 = T7, T4 = T8, T5 = P7, T6 = P8.
 *      A1, A2 (ear lobes) and M1, M2 (mastoids) are electrodes of their own and keep their names; each carries the flag
 *      EAR, and whoever looks for one may take the other of the same side (sn_electrode_stand_in)
 * A label that is no electrode keeps its (trimmed) text: flag UNKNOWN, electrode -1.
 *
 * KIND.  A guess from prefix and name alone: electrodes and pairs with at least one electrode are EEG; EOG, LOC, ROC,
 * HEOG, VEOG; ECG, EKG; EMG, chin, leg, ...; respiration, flow, thorax, abdomen; temperature; pleth, PPG; status,
 * trigger, marker, STI; known helpers (SpO2, pulse, DC, photic, light, accelerometer, ...) are OTHER. NONE: the name
 * does not tell. "E1-M2" is EOG (AASM), "E1" alone is not (a name of geodesic nets).
 *
 * BIOSEMI.  Labels A1..A32, B1..B32, ... are pins of an amplifier, not electrodes: where sn_channel_names_parse finds
 * A3 or more beside A1 and A2, all of them keep their text with the flag PIN; layout.h places them only when asked. */
#ifndef SN_MODALITIES_EEG_CHANNEL_NAMES_H
#define SN_MODALITIES_EEG_CHANNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

typedef enum sn_name_flag {
  SN_NAME_TRIMMED = 1 << 0,
  SN_NAME_PREFIX = 1 << 1,    /* a type in front was dropped */
  SN_NAME_REFERENCE = 1 << 2, /* a reference behind was dropped: see reference */
  SN_NAME_DOTS = 1 << 3,      /* trailing dots were dropped */
  SN_NAME_CASE = 1 << 4,      /* the spelling changed */
  SN_NAME_OLD = 1 << 5,       /* T3, T4, T5, T6 under their newer names */
  SN_NAME_EAR = 1 << 6,       /* A1, A2, M1, M2: ear lobe and mastoid may stand for each other */
  SN_NAME_BIPOLAR = 1 << 7,   /* a difference of two */
  SN_NAME_UNKNOWN = 1 << 8,   /* no electrode (or, of a pair, at least one part is none) */
  SN_NAME_DUPLICATE = 1 << 9, /* an earlier channel has the same cleaned name: see duplicate_of */
  SN_NAME_PIN = 1 << 10       /* BioSemi pin, not an electrode */
} sn_name_flag;

enum { SN_NAME_PART = 48, SN_NAME_TEXT = 256 };

typedef struct sn_channel_name {
  char name[SN_CHANNEL_NAME];   /* cleaned: "Fp1", "Fp1-F7", "EOG horizontal" */
  char part[2][SN_NAME_PART];   /* cleaned parts of a pair, else "" */
  char reference[SN_NAME_PART]; /* "REF", "LE", "AVG" as written; "" none */
  uint32_t flags;               /* of sn_name_flag */
  int32_t electrode;            /* number of layout.h, -1: none, or a pair */
  int32_t pair[2];              /* electrodes of a pair, -1: none */
  sn_sensor_kind kind;          /* SN_SENSOR_NONE: the name does not tell */
  int64_t duplicate_of;         /* index of the first channel of that name and kind, -1 */
} sn_channel_name;

/* One label. Never fails; text that is too long is cut at a character of UTF-8. */
void sn_channel_name_parse(sn_channel_name *out, const char *raw);

/* All labels of a recording together: finds duplicates and BioSemi pins. out (n) [out]. SN_E_MEMORY. */
SN_MUST_CHECK sn_status sn_channel_names_parse(sn_channel_name *out, const char *const *raw, int64_t n, sn_error *err);

/* What was done, in words: "prefix \"EEG \" dropped, reference REF dropped, T3 is T7". "" when nothing was. */
void sn_channel_name_describe(char text[SN_NAME_TEXT], const sn_channel_name *name, const char *raw);

/* For readers: sets name of every channel from its raw_name, and kind where it is SN_SENSOR_NONE (where the name does
 * not tell, `otherwise`). Adds the warnings "channel_duplicate" (with both labels), "channel_alias" (old names, and
 * ears) and "channel_unknown" (EEG channels that are no electrode). recording->reference is set from the labels where
 * it is empty and all EEG labels agree. Duplicates keep their common name: sn_recording_find_channel finds the first, a
 * montage takes only the first, and counts the others. */
SN_MUST_CHECK sn_status sn_channel_names_apply(sn_recording *recording, sn_sensor_kind otherwise, sn_error *err);

#endif
