/* XDF: streams of the Lab Streaming Layer ("XDF Specification", xdf-modules, version 1.0).
 *
 * One file is one recording: the numeric stream with a nominal rate above 0 that has the most numbers (samples times
 * channels; of equals the one whose header comes first). Other numeric streams have clocks and rates of their own, are
 * not mixed in, and are named by the warning "stream_left_out"; text streams are annotations. The whole file is read
 * while opening.
 *
 * Time.  A sample without a time stamp lies 1 / nominal rate behind the one in front of it. Stamps are put on the
 * recorder's clock: the clock offsets of a stream are cut where the clock was reset (measurement times go back, or the
 * offset jumps by more than 1 s and a hundredth of the time between), a line is fitted to each piece (least squares;
 * the mean of fewer than three), and a stamp takes the line of the piece whose measurement times are nearest to it. A
 * stream without offsets stays as it is. Frames are counted at the nominal rate. A segment ends where two stamps follow
 * each other by more than 1 / rate + max(0.1 s, 2 / rate), or go back by more than 0.1 s: samples were dropped, or the
 * clock changed. The next segment lies at the difference of the first stamps, rounded to a frame, but never before the
 * end of the one in front (warning "segment_time"). An effective rate that is more than 0.1 % off, or
 * stamps that do not advance, are the warning "effective_rate"; a stamp before the one in front of it is "stamps_backwards".
 *
 * Annotations.  Each text of a text stream that is not empty: code = the stream's name, text; onset = its stamp less
 * the first of the recording; sample: the nearest frame of the segment that it falls in, by that segment's own stamps.
 * Before the first sample or behind the last: left out, "annotation_beyond_end".
 *
 * Channels.  Name, unit and type from desc/channels/channel (label, unit, type) of the stream's header; without it,
 * numbers. The format has no default unit: where none is stated the unit is unknown and values are refused until one is
 * assumed.
 *
 * Damage.  A chunk that passes the end of the file, or whose content does not fill it: SN_E_CORRUPT with its byte;
 * tolerant: what lies before it is read, warning "truncated". A footer's sample count that differs: warning
 * "sample_count". */
#ifndef SN_MODALITIES_XDF_H
#define SN_MODALITIES_XDF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

/* The XML that stands in headers and footers: calls `take` for the text of every element, with its path
 * ("info/desc/channels/channel/ label") and the entities replaced; text and path are valid during the call. Elements
 * within an element: each is told when it ends, with "" where it holds elements only. Malformed XML ends the walk:
 * false. Text of at most 4096 bytes, depth of at most 16. */
bool sn_xdf_walk_xml(const char *xml, int64_t n, void (*take)(void *context, const char *path, const char *text),
                     void *context);

#endif
