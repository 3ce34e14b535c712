#include "http2/http2_fields.h"

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/num.h"

#define TIMEOUT_DIGITS_MAX 8u
#define TIMEOUT_VALUE_MAX UINT64_C(99999999)

static const struct {
    char unit;
    uint64_t ns;
} units[] = {
    {'n', 1                      },
    {'u', UINT64_C(1000)         },
    {'m', UINT64_C(1000000)      },
    {'S', UINT64_C(1000000000)   },
    {'M', UINT64_C(60000000000)  },
    {'H', UINT64_C(3600000000000)},
};

/* Prints the number, then the unit; returns the length. */
static size_t print_digits(uint64_t value, char unit, char text[DV_H2_TIMEOUT_BYTES])
{
    char reversed[DV_H2_TIMEOUT_BYTES];
    size_t n = 0;
    size_t at = 0;

    for (; value > 0; value /= 10)
        reversed[n++] = (char)('0' + value % 10);
    while (n > 0)
        text[at++] = reversed[--n];
    text[at++] = unit;
    text[at] = '\0';
    return at;
}

size_t dv_h2_timeout_print(uint64_t timeout_ns, char text[DV_H2_TIMEOUT_BYTES])
{
    size_t i = 0;
    uint64_t value;

    do
        value = timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0);
    while (value > TIMEOUT_VALUE_MAX && ++i < DV_COUNT(units));
    if (value == 0)
        value = 1;
    return print_digits(value, units[i].unit, text);
}

bool dv_h2_timeout_parse(dv_str text, uint64_t *timeout_ns)
{
    uint64_t value;

    if (text.n < 2 || text.n > TIMEOUT_DIGITS_MAX + 1 ||
        !dv_str_to_u64(dv_str_slice(text, 0, text.n - 1), &value))
        return false;
    for (size_t i = 0; i < DV_COUNT(units); i++) {
        if (text.p[text.n - 1] != units[i].unit)
            continue;
        *timeout_ns = value > UINT64_MAX / units[i].ns ? UINT64_MAX : value * units[i].ns;
        return true;
    }
    return false;
}

void dv_h2_percent_encode(dv_str text, struct dv_buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (c < 0x20 || c > 0x7e || c == '%')
            dv_buf_printf(out, "%%%02X", c);
        else
            dv_buf_add_char(out, (char)c);
    }
}

void dv_h2_percent_decode(dv_str text, struct dv_buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        int byte = dv_percent_byte(text, i);

        if (byte > 0) {
            dv_buf_add_char(out, (char)byte);
            i += 2;
        } else {
            dv_buf_add_char(out, text.p[i]);
        }
    }
}

bool dv_h2_is_grpc_content_type(dv_str value)
{
    dv_str type = DV_STR("application/grpc");

    if (value.n < type.n || !dv_str_eq_nocase(dv_str_slice(value, 0, type.n), type))
        return false;
    return value.n == type.n || value.p[type.n] == '+' || value.p[type.n] == ';';
}

enum dv_code dv_h2_code_from_http(uint32_t http_status)
{
    switch (http_status) {
    case 400:
        return DV_INTERNAL;
    case 401:
        return DV_UNAUTHENTICATED;
    case 403:
        return DV_PERMISSION_DENIED;
    case 404:
        return DV_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return DV_UNAVAILABLE;
    default:
        return DV_UNKNOWN;
    }
}

enum dv_code dv_h2_code_from_reset(uint32_t error_code)
{
    switch (error_code) {
    case NGHTTP2_REFUSED_STREAM:
        return DV_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return DV_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
    case NGHTTP2_FLOW_CONTROL_ERROR:
        return DV_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return DV_PERMISSION_DENIED;
    default:
        return DV_INTERNAL;
    }
}

enum dv_code dv_h2_code_parse(dv_str text)
{
    uint32_t code;

    /* Numbers that gRPC has not given a name yet are legal; they must still fit the type. */
    if (!dv_str_to_u32(text, &code) || code > 0x7fffffff)
        return DV_UNKNOWN;
    return (enum dv_code)code;
}
