#include "upgrade/spdy/spdy_header.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/ascii.h"
#include "base/defs.h"
#include "base/err.h"
#include "zip/zip.h"

#define LENGTH_BYTES 4u

void dv_spdy_dictionary(unsigned char dictionary[DV_SPDY_DICTIONARY_BYTES])
{
    static const char *const words[] = {
        "options",
        "head",
        "post",
        "put",
        "delete",
        "trace",
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "accept-ranges",
        "age",
        "allow",
        "authorization",
        "cache-control",
        "connection",
        "content-base",
        "content-encoding",
        "content-language",
        "content-length",
        "content-location",
        "content-md5",
        "content-range",
        "content-type",
        "date",
        "etag",
        "expect",
        "expires",
        "from",
        "host",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "last-modified",
        "location",
        "max-forwards",
        "pragma",
        "proxy-authenticate",
        "proxy-authorization",
        "range",
        "referer",
        "retry-after",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "vary",
        "via",
        "warning",
        "www-authenticate",
        "method",
        "get",
        "status",
        "200 OK",
        "version",
        "HTTP/1.1",
        "url",
        "public",
        "set-cookie",
        "keep-alive",
        "origin",
    };
    static const char tail[] =
        "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504"
        "505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 "
        "Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 "
        "Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
        "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
        "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
        "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
    size_t at = 0;

    for (size_t i = 0; i < DV_COUNT(words); i++) {
        size_t n = strlen(words[i]);

        memset(dictionary + at, 0, LENGTH_BYTES);
        dictionary[at + 3] = (unsigned char)n;
        memcpy(dictionary + at + LENGTH_BYTES, words[i], n);
        at += LENGTH_BYTES + n;
    }
    memcpy(dictionary + at, tail, sizeof(tail) - 1);
    assert(at + sizeof(tail) - 1 == DV_SPDY_DICTIONARY_BYTES);
}

void dv_spdy_headers_init(struct dv_spdy_headers *headers, size_t block_bytes_max)
{
    dv_str dictionary;

    *headers = (struct dv_spdy_headers){0};
    dv_buf_init(&headers->text, block_bytes_max);
    dv_spdy_dictionary(headers->dictionary);
    dictionary = (dv_str){(const char *)headers->dictionary, sizeof(headers->dictionary)};
    headers->in = dv_zip_unpacker_new(dictionary);
    headers->out = dv_zip_packer_new(DV_ZIP_ZLIB, dictionary);
}

void dv_spdy_headers_fini(struct dv_spdy_headers *headers)
{
    dv_zip_unpacker_free(headers->in);
    dv_zip_packer_free(headers->out);
    dv_buf_fini(&headers->text);
}

/* ---- unpacking ---- */

void dv_spdy_headers_begin(struct dv_spdy_headers *headers)
{
    dv_buf_clear(&headers->text);
    headers->n_fields = 0;
}

bool dv_spdy_headers_add(struct dv_spdy_headers *headers, dv_str part, struct dv_err *err)
{
    return dv_zip_unpack(headers->in, part, &headers->text, err) ||
           dv_wrap(err, "SPDY: a header block cannot be unpacked");
}

/* Takes a number or a text off the front of the block; false when it is not all there. */
static bool take_number(dv_str *rest, uint32_t *value)
{
    if (rest->n < LENGTH_BYTES)
        return false;
    *value = 0;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        *value = *value << 8 | (uint8_t)rest->p[i];
    *rest = dv_str_slice(*rest, LENGTH_BYTES, rest->n);
    return true;
}

static bool take_text(dv_str *rest, dv_str *text)
{
    uint32_t n;

    if (!take_number(rest, &n) || n > rest->n)
        return false;
    *text = dv_str_slice(*rest, 0, n);
    *rest = dv_str_slice(*rest, n, rest->n);
    return true;
}

/* A name is there once, has at least a letter, and none in upper case. */
static bool is_new_name(const struct dv_spdy_headers *headers, dv_str name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (dv_is_upper(name.p[i]) || name.p[i] == '\0')
            return false;
    }
    for (size_t i = 0; i < headers->n_fields; i++) {
        if (dv_str_eq(headers->fields[i].name, name))
            return false;
    }
    return name.n > 0;
}

bool dv_spdy_headers_end(struct dv_spdy_headers *headers, struct dv_err *err)
{
    dv_str rest = dv_buf_str(&headers->text);
    uint32_t n_fields;

    if (!take_number(&rest, &n_fields))
        return dv_fail(err, DV_INVALID_ARGUMENT, "SPDY: a header block without a count");
    if (n_fields > DV_SPDY_FIELDS_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "SPDY: a header block of %u fields", n_fields);
    for (uint32_t i = 0; i < n_fields; i++) {
        struct dv_spdy_field field;

        if (!take_text(&rest, &field.name) || !take_text(&rest, &field.value))
            return dv_fail(err, DV_INVALID_ARGUMENT, "SPDY: a header block ends within a field");
        if (!is_new_name(headers, field.name))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "SPDY: a field's name is empty, in upper case, or there twice");
        headers->fields[headers->n_fields++] = field;
    }
    if (rest.n > 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "SPDY: a header block goes on after its fields");
    return true;
}

/* ---- packing ---- */

static void pack_number(struct dv_zip_packer *out, size_t value, enum dv_zip_flush flush,
                        struct dv_buf *packed)
{
    const char bytes[LENGTH_BYTES] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
                                      (char)value};

    dv_zip_pack(out, (dv_str){bytes, sizeof(bytes)}, flush, packed);
}

static void pack_text(struct dv_zip_packer *out, dv_str text, enum dv_zip_flush flush,
                      struct dv_buf *packed)
{
    pack_number(out, text.n, DV_ZIP_MORE, packed);
    dv_zip_pack(out, text, flush, packed);
}

void dv_spdy_headers_print(struct dv_spdy_headers *headers, const struct dv_spdy_field *fields,
                           size_t n_fields, struct dv_buf *packed)
{
    struct dv_zip_packer *out = headers->out;

    pack_number(out, n_fields, n_fields == 0 ? DV_ZIP_FLUSH : DV_ZIP_MORE, packed);
    for (size_t i = 0; i < n_fields; i++) {
        pack_text(out, fields[i].name, DV_ZIP_MORE, packed);
        pack_text(out, fields[i].value, i + 1 == n_fields ? DV_ZIP_FLUSH : DV_ZIP_MORE, packed);
    }
}
