/* zip.h - zlib, wrapped once: streams of bytes are packed and unpacked, a part at a time. Pure. */
#ifndef DV_ZIP_H
#define DV_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_buf;
struct dv_err;
struct dv_zip_packer;
struct dv_zip_unpacker;

enum dv_zip_form {
    DV_ZIP_GZIP, /* of files */
    DV_ZIP_ZLIB, /* of protocols; takes 10 KiB where zlib's own settings take 256 KiB */
};

/* How much of what was given so far has to come out. */
enum dv_zip_flush {
    DV_ZIP_MORE,  /* nothing: more follows */
    DV_ZIP_FLUSH, /* all, and more may follow */
    DV_ZIP_END,   /* all, and nothing follows */
};

/* `dictionary` is what both sides know before the first byte; it may be empty. Copied. */
struct dv_zip_packer *dv_zip_packer_new(enum dv_zip_form form, dv_str dictionary);
void dv_zip_packer_free(struct dv_zip_packer *packer); /* NULL is fine */
void dv_zip_pack(struct dv_zip_packer *packer, dv_str bytes, enum dv_zip_flush flush,
                 struct dv_buf *packed);

/* Unpacks DV_ZIP_ZLIB. The dictionary is kept, not copied. */
struct dv_zip_unpacker *dv_zip_unpacker_new(dv_str dictionary);
void dv_zip_unpacker_free(struct dv_zip_unpacker *unpacker); /* NULL is fine */
/* Unpacks the next bytes; nothing more is unpacked once `bytes_out` has reached its ceiling.
 * DV_INVALID_ARGUMENT: they are not packed like this, or the stream has ended.
 * DV_RESOURCE_EXHAUSTED: it is more than fits. */
DV_CHECKED bool dv_zip_unpack(struct dv_zip_unpacker *unpacker, dv_str bytes,
                              struct dv_buf *unpacked, struct dv_err *err);

/* The CRC-32 of gzip and PNG over more bytes; `crc` is what it was before them, 0 at first. */
uint32_t dv_zip_crc32(uint32_t crc, dv_str bytes);

#endif
