/* spdy_header.h - header blocks of SPDY/3: one zlib stream in each direction for the whole
 * connection, which begins with a dictionary. */
#ifndef DV_UPGRADE_SPDY_HEADER_H
#define DV_UPGRADE_SPDY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "upgrade/spdy.h"

struct dv_err;
struct dv_zip_packer;
struct dv_zip_unpacker;

#define DV_SPDY_DICTIONARY_BYTES 1423u

struct dv_spdy_headers {
    struct dv_zip_unpacker *in;
    struct dv_zip_packer *out;
    unsigned char dictionary[DV_SPDY_DICTIONARY_BYTES];
    struct dv_buf text; /* the block that arrives, unpacked */
    struct dv_spdy_field fields[DV_SPDY_FIELDS_MAX];
    size_t n_fields;
};

void dv_spdy_headers_init(struct dv_spdy_headers *headers, size_t block_bytes_max);
void dv_spdy_headers_fini(struct dv_spdy_headers *headers);

/* Begins a block, and unpacks the next part of it. An error is one of the connection: what follows
 * could not be unpacked. */
void dv_spdy_headers_begin(struct dv_spdy_headers *headers);
DV_CHECKED bool dv_spdy_headers_add(struct dv_spdy_headers *headers, dv_str part,
                                    struct dv_err *err);
/* Reads the fields of a whole block; they are borrowed until the next one begins. */
DV_CHECKED bool dv_spdy_headers_end(struct dv_spdy_headers *headers, struct dv_err *err);

/* Packs a block. */
void dv_spdy_headers_print(struct dv_spdy_headers *headers, const struct dv_spdy_field *fields,
                           size_t n_fields, struct dv_buf *out);

/* Writes the dictionary that the draft has for header blocks. */
void dv_spdy_dictionary(unsigned char dictionary[DV_SPDY_DICTIONARY_BYTES]);

#endif
