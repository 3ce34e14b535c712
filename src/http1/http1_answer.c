/* http1_answer.c - prints answers. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "http1/http1.h"

static const struct {
    unsigned status;
    dv_str reason;
} reasons[] = {
    {100, DV_STR_INIT("Continue")                       },
    {101, DV_STR_INIT("Switching Protocols")            },
    {200, DV_STR_INIT("OK")                             },
    {201, DV_STR_INIT("Created")                        },
    {202, DV_STR_INIT("Accepted")                       },
    {204, DV_STR_INIT("No Content")                     },
    {206, DV_STR_INIT("Partial Content")                },
    {301, DV_STR_INIT("Moved Permanently")              },
    {302, DV_STR_INIT("Found")                          },
    {304, DV_STR_INIT("Not Modified")                   },
    {307, DV_STR_INIT("Temporary Redirect")             },
    {400, DV_STR_INIT("Bad Request")                    },
    {401, DV_STR_INIT("Unauthorized")                   },
    {403, DV_STR_INIT("Forbidden")                      },
    {404, DV_STR_INIT("Not Found")                      },
    {405, DV_STR_INIT("Method Not Allowed")             },
    {406, DV_STR_INIT("Not Acceptable")                 },
    {409, DV_STR_INIT("Conflict")                       },
    {410, DV_STR_INIT("Gone")                           },
    {413, DV_STR_INIT("Content Too Large")              },
    {414, DV_STR_INIT("URI Too Long")                   },
    {415, DV_STR_INIT("Unsupported Media Type")         },
    {417, DV_STR_INIT("Expectation Failed")             },
    {422, DV_STR_INIT("Unprocessable Content")          },
    {426, DV_STR_INIT("Upgrade Required")               },
    {429, DV_STR_INIT("Too Many Requests")              },
    {431, DV_STR_INIT("Request Header Fields Too Large")},
    {500, DV_STR_INIT("Internal Server Error")          },
    {501, DV_STR_INIT("Not Implemented")                },
    {503, DV_STR_INIT("Service Unavailable")            },
    {504, DV_STR_INIT("Gateway Timeout")                },
    {505, DV_STR_INIT("HTTP Version Not Supported")     },
    {507, DV_STR_INIT("Insufficient Storage")           },
};

/* The reason is for people; RFC 9112 lets it be empty. */
static dv_str reason_of(unsigned status)
{
    for (size_t i = 0; i < DV_COUNT(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return DV_STR("");
}

static void add_field(struct dv_buf *out, dv_str name, dv_str value)
{
    dv_buf_add(out, name);
    dv_buf_add(out, DV_STR(": "));
    dv_buf_add(out, value);
    dv_buf_add(out, DV_STR("\r\n"));
}

static bool is_close(const struct dv_h1_field *field)
{
    return dv_str_eq_nocase(field->name, DV_STR("Connection")) &&
           dv_str_eq_nocase(field->value, DV_STR("close"));
}

static enum dv_h1_framing find_framing(const struct dv_h1 *h1, const struct dv_h1_answer *answer)
{
    if (h1->is_head || answer->status < 200 || answer->status == 204 || answer->status == 304)
        return DV_H1_NO_BODY;
    if (!answer->is_stream)
        return DV_H1_LENGTH;
    return h1->is_old ? DV_H1_UNTIL_CLOSED : DV_H1_CHUNKS;
}

enum dv_h1_framing dv_h1_print_head(struct dv_h1 *h1, const struct dv_h1_answer *answer,
                                    struct dv_buf *out)
{
    enum dv_h1_framing framing = find_framing(h1, answer);
    bool has_length = answer->status >= 200 && answer->status != 204 && answer->status != 304;

    if (answer->closes || framing == DV_H1_UNTIL_CLOSED)
        h1->keeps_open = false;
    for (size_t i = 0; i < answer->n_fields; i++)
        if (is_close(&answer->fields[i]))
            h1->keeps_open = false;
    dv_buf_add(out, DV_STR("HTTP/1.1 "));
    dv_buf_add_u64(out, answer->status);
    dv_buf_add_char(out, ' ');
    dv_buf_add(out, reason_of(answer->status));
    dv_buf_add(out, DV_STR("\r\n"));
    if (answer->status >= 200 && !h1->keeps_open)
        dv_buf_add(out, DV_STR("Connection: close\r\n"));
    else if (h1->is_old)
        dv_buf_add(out, DV_STR("Connection: keep-alive\r\n"));
    if (answer->date.n > 0)
        add_field(out, DV_STR("Date"), answer->date);
    for (size_t i = 0; i < answer->n_fields; i++)
        if (!is_close(&answer->fields[i]))
            add_field(out, answer->fields[i].name, answer->fields[i].value);
    if (has_length && !answer->is_stream) {
        dv_buf_add(out, DV_STR("Content-Length: "));
        dv_buf_add_u64(out, answer->length);
        dv_buf_add(out, DV_STR("\r\n"));
    } else if (has_length && !h1->is_old) {
        dv_buf_add(out, DV_STR("Transfer-Encoding: chunked\r\n"));
    }
    dv_buf_add(out, DV_STR("\r\n"));
    return framing;
}

bool dv_h1_closes(const struct dv_h1 *h1)
{
    return !h1->keeps_open;
}

void dv_h1_leave(struct dv_h1 *h1)
{
    h1->keeps_open = false;
    h1->state = DV_H1_IS_BAD;
    h1->status = 0;
    (void)dv_fail(&h1->err, DV_FAILED_PRECONDITION, "the connection has left HTTP");
}

void dv_h1_print_continue(struct dv_buf *out)
{
    dv_buf_add(out, DV_STR("HTTP/1.1 100 Continue\r\n\r\n"));
}

void dv_h1_print_chunk(dv_str bytes, struct dv_buf *out)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[2 * sizeof(bytes.n)];
    size_t at = sizeof(text);

    if (bytes.n == 0)
        return;
    for (size_t n = bytes.n; n > 0; n /= 16)
        text[--at] = digits[n % 16];
    dv_buf_add(out, (dv_str){text + at, sizeof(text) - at});
    dv_buf_add(out, DV_STR("\r\n"));
    dv_buf_add(out, bytes);
    dv_buf_add(out, DV_STR("\r\n"));
}

void dv_h1_print_last_chunk(struct dv_buf *out)
{
    dv_buf_add(out, DV_STR("0\r\n\r\n"));
}

dv_str dv_h1_print_date(int64_t seconds, char text[DV_H1_DATE_BYTES])
{
    static const char days[][4] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct dv_date date;
    int64_t day;
    unsigned second;
    int n;

    seconds = seconds < 0 ? 0 : seconds > DV_RFC3339_SECONDS_MAX ? DV_RFC3339_SECONDS_MAX : seconds;
    day = dv_days_of_seconds(seconds);
    date = dv_date_from_days(day);
    second = (unsigned)(seconds - day * DV_DAY_SECONDS);
    n = snprintf(text, DV_H1_DATE_BYTES, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[day % 7],
                 (unsigned)date.day % 100, months[date.month - 1], (unsigned)date.year % 10000,
                 second / 3600, second / 60 % 60, second % 60);
    return (dv_str){text, n > 0 ? dv_size_min((size_t)n, DV_H1_DATE_BYTES - 1) : 0};
}
