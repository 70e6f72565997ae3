/* Between the files of the CTF reader. Not for others. */
#ifndef SN_MODALITIES_CTF_PARTS_H
#define SN_MODALITIES_CTF_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stream.h"
#include "core/text.h"
#include "modalities/formats/ctf/ctf.h"
#include "modalities/formats/head_frame.h"

enum { CTF_NAME = 256 };
enum { /* types of channels */
  CTF_REF_MAG = 0, CTF_REF_GRAD = 1, CTF_REF_LAST = 3, CTF_MEG = 4, CTF_MEG_GRAD = 5, CTF_MEG_LAST = 7, CTF_EEG_REF = 8,
  CTF_EEG = 9, CTF_STIM = 11, CTF_CLOCK = 17, CTF_STIM_DIGITAL = 20, CTF_EEG_BIPOLAR = 21
};

typedef struct ctf_coil { /* metres; all zeros: not stated */
  double position[3], direction[3];
} ctf_coil;

typedef struct ctf_channel {
  char name[64];          /* UTF-8, without the system's number */
  int type, grade;
  double proper, q, io;
  ctf_coil dewar[2], head[2];
} ctf_channel;

typedef struct ctf_header {
  int64_t n_samples, n_channels, n_trials, n_before, n_averaged; /* n_samples: of a trial; n_before: its sync point */
  double rate;
  ctf_channel *channels;  /* (n_channels), owned */
} ctf_header;

/* Of the .res4; fills the recording's channels' raw_name, subject, start_time and the notes of filters. */
SN_MUST_CHECK sn_status sn_ctf_header_read(const sn_stream *stream, ctf_header *header, sn_recording *r, sn_error *err);

/* The measured head coils. frame: from the CTF head (or dewar) frame to SN_FRAME_HEAD; not known where not stated. */
SN_MUST_CHECK sn_status sn_ctf_coils_read(const sn_stream *stream, sn_head_frame *from_head, sn_head_frame *from_dewar, sn_error *err);

/* Lines of a text file: cut off *rest, trimmed, as UTF-8 as the whole text is; NULL: no more. *line counts from 1. */
char *sn_ctf_next_line(char **rest, int64_t *line);

typedef struct ctf_recording {
  const sn_folder *folder;  /* borrowed */
  char stem[CTF_NAME];
  int64_t n_parts, parts_room;
  struct ctf_file {
    sn_stream *stream;
    int64_t first_trial, n_trials;
  } *parts;
  int64_t n_samples, n_channels, n_trials, n_before;
  int64_t n_frames;         /* of all trials together, without what was never recorded */
  double *scale;            /* (n_channels) */
  int64_t *first_frame;     /* (segments) in frames of all trials together */
} ctf_recording;

/* The annotations of the text files, appended. which: NULL all, or one of "markers", "classes", "bad". */
SN_MUST_CHECK sn_status sn_ctf_annotations_read(const sn_recording *r, const char *which, sn_annotations *list, sn_error *err);

#endif
