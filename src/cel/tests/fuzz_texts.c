/* fuzz_texts.c - what a selector can make from any text: addresses, times, durations, zones, URLs.
 *
 * What is taken and printed is taken again, and is the same; parts of a URL lie in it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cel/value/cel_net.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"
#include "cel/value/number_text.h"
#include "cel/value/url.h"

#define BYTES_MAX 1000u
/* A thousand hours and a thousand minutes are taken. */
#define OFFSET_S_MAX (1000 * 3600 + 1000 * 60)
#define EXACT_NS 1000000000000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_net(dv_str text)
{
    char printed[DV_CEL_NET_BYTES];
    struct dv_cel_ip ip, ip_again;
    struct dv_cel_cidr cidr, cidr_again;

    if (dv_cel_ip_parse(text, &ip)) {
        assert(ip.n == 4 || ip.n == 16);
        dv_cel_ip_print(&ip, printed);
        assert(dv_cel_ip_parse(dv_str_from_c(printed), &ip_again) && dv_cel_ip_eq(&ip, &ip_again));
    }
    if (dv_cel_cidr_parse(text, &cidr)) {
        assert(cidr.bits <= 8 * cidr.ip.n);
        dv_cel_cidr_print(&cidr, printed);
        assert(dv_cel_cidr_parse(dv_str_from_c(printed), &cidr_again) &&
               dv_cel_cidr_eq(&cidr, &cidr_again));
    }
}

static void check_times(dv_str text)
{
    char printed[DV_CEL_NUMBER_BYTES];
    struct dv_cel_val time = dv_cel_time_parse(text);
    struct dv_cel_val duration = dv_cel_duration_parse(text);
    struct dv_cel_val again;
    int64_t offset;

    if (!dv_cel_is_error(&time)) {
        assert(time.i >= DV_CEL_SECONDS_MIN && time.i <= DV_CEL_SECONDS_MAX);
        assert(time.nanos >= 0 && time.nanos < 1000000000);
        dv_cel_time_print(&time, printed);
        again = dv_cel_time_parse(dv_str_from_c(printed));
        assert(!dv_cel_is_error(&again) && again.i == time.i && again.nanos == time.nanos);
    }
    /* As the reference prints a number of seconds, which beyond a few days is not exact. */
    if (!dv_cel_is_error(&duration) && duration.i > -EXACT_NS && duration.i < EXACT_NS) {
        dv_cel_duration_print(duration.i, printed);
        again = dv_cel_duration_parse(dv_str_from_c(printed));
        assert(!dv_cel_is_error(&again) && again.i >= duration.i - 1 && again.i <= duration.i + 1);
    }
    if (dv_cel_zone_offset(text, 0, &offset))
        assert(offset >= -OFFSET_S_MAX && offset <= OFFSET_S_MAX);
}

static void check_url(dv_str text, struct dv_arena *arena)
{
    struct dv_cel_url url;
    dv_str plain, path;

    if (dv_cel_url_unescape(text, false, arena, &plain))
        assert(plain.n <= text.n);
    if (!dv_cel_url_parse(text, arena, &url))
        return;
    assert(dv_cel_url_eq(&url, &url));
    assert(dv_cel_url_hostname(&url).n + dv_cel_url_port(&url).n <= url.host.n);
    path = dv_cel_url_escaped_path(&url, arena);
    assert(dv_cel_url_unescape(path, false, arena, &path));
    assert(dv_cel_url_unescape(url.path, false, arena, &plain) && dv_str_eq(path, plain));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {(const char *)data, size};

    if (size > BYTES_MAX)
        return 0;
    check_net(text);
    check_times(text);
    check_url(text, arena);
    return 0;
}
