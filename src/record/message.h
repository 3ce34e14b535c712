/* message.h - the messages in records, by their descriptors: printed, and without what is secret.
 */
#ifndef DV_RECORD_MESSAGE_H
#define DV_RECORD_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "record/record.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;
struct dv_arena;
struct dv_buf;
struct dv_err;

/* Bits of a method. */
#define DV_RECORD_IS_STREAM 1u
#define DV_RECORD_TELLS_OF_PLUGIN 2u /* what the plugin says counts until it says it again */

struct dv_record_method {
    const char *path;
    const struct ProtobufCMessageDescriptor *request;
    const struct ProtobufCMessageDescriptor *response;
    uint32_t flags;
};

/* The method of "/package.Service/Method"; NULL: no protocol between agents and plugins has it. */
const struct dv_record_method *dv_record_method_find(dv_str path);
dv_str dv_record_method_name(dv_str path); /* "Method" */

/* Whether a record's message is the request of its call, and not an answer. */
static inline bool dv_record_is_request(const struct dv_record *record)
{
    return record->is_sent != record->is_served;
}

/* Decodes a record's message into `arena`. DV_UNIMPLEMENTED: its method is not known.
 * DV_OUT_OF_RANGE: only its beginning is there. */
struct ProtobufCMessage *dv_record_decode(const struct dv_record *record, struct dv_arena *arena,
                                          struct dv_err *err);
/* Adds the message as JSON on one line: what was sent, by the names of the protocol. One that
 * cannot be decoded is {"[undecoded]": base64, "[why]": text}. */
void dv_record_print_message(const struct dv_record *record, struct dv_buf *buf);

/* What may be secret in messages, a bit each. */
#define DV_BLANK_ENV 1u
#define DV_BLANK_ANNOTATIONS 2u
#define DV_BLANK_CONFIG 4u
#define DV_BLANK_UNKNOWN 8u
#define DV_BLANK_ALL 15u

/* What stands where something was blanked. */
#define DV_BLANKED "[blanked]"

/* Parses "env,config" or "all". DV_INVALID_ARGUMENT names the word that is wrong. */
DV_CHECKED bool dv_record_blanks_parse(dv_str list, uint32_t *blanks, struct dv_err *err);
/* Blanks the record's message; the new one is in `arena`. */
void dv_record_blank(struct dv_record *record, uint32_t blanks, struct dv_arena *arena);

#endif
