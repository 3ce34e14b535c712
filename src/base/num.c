#include "base/num.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/ascii.h"

bool dv_size_add(size_t a, size_t b, size_t *sum)
{
    if (a > SIZE_MAX - b)
        return false;
    *sum = a + b;
    return true;
}

bool dv_size_mul(size_t a, size_t b, size_t *product)
{
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *product = a * b;
    return true;
}

uint64_t dv_u64_add_clamped(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool dv_str_to_u64(dv_str s, uint64_t *value)
{
    uint64_t sum = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

        if (digit > 9 || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

bool dv_str_to_i64(dv_str s, int64_t *value)
{
    bool is_negative = s.n > 0 && s.p[0] == '-';
    uint64_t size;

    if (!dv_str_to_u64(dv_str_slice(s, is_negative, s.n), &size))
        return false;
    if (size > (uint64_t)INT64_MAX + is_negative)
        return false;
    *value = is_negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

bool dv_str_to_u32(dv_str s, uint32_t *value)
{
    uint64_t wide;

    if (!dv_str_to_u64(s, &wide) || wide > UINT32_MAX)
        return false;
    *value = (uint32_t)wide;
    return true;
}

bool dv_str_to_size(dv_str s, size_t *value)
{
    uint64_t wide;

    if (!dv_str_to_u64(s, &wide) || wide > SIZE_MAX)
        return false;
    *value = (size_t)wide;
    return true;
}

dv_str dv_u64_print(uint64_t value, char room[DV_U64_DIGITS])
{
    char digits[DV_U64_DIGITS];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    memcpy(room, digits + at, sizeof(digits) - at);
    return (dv_str){room, sizeof(digits) - at};
}

bool dv_str_is_digits(dv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!dv_is_digit(s.p[i]))
            return false;
    return s.n > 0;
}

int dv_percent_byte(dv_str s, size_t at)
{
    bool is_whole = at < s.n && s.n - at >= 3 && s.p[at] == '%';
    int high = is_whole ? dv_hex_value(s.p[at + 1]) : -1;
    int low = is_whole ? dv_hex_value(s.p[at + 2]) : -1;

    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

uint32_t dv_fnv1a(dv_str s)
{
    uint32_t sum = UINT32_C(2166136261);

    for (size_t i = 0; i < s.n; i++)
        sum = (sum ^ (unsigned char)s.p[i]) * UINT32_C(16777619);
    return sum;
}

/* Numbers that a thread has got from the kernel ahead, so that not each one is a call to it. One
 * that was used is erased: nobody finds in our memory what ids or tokens were made of. */
#define N_AHEAD 32u
static _Thread_local struct {
    uint64_t values[N_AHEAD];
    size_t n;
} ahead;

/* The child of a fork has what the thread that forked had: two processes would go on with the same
 * numbers. */
static void forget_numbers(void)
{
    memset(&ahead, 0, sizeof(ahead));
}

static void forget_numbers_in_children(void)
{
    int failed = pthread_atfork(NULL, NULL, forget_numbers);

    assert(!failed); /* it only runs out of memory */
}

uint64_t dv_random_u64(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t value;
    ssize_t got;

    if (ahead.n == 0) {
        (void)pthread_once(&once, forget_numbers_in_children); /* does not fail */
        do
            got = getrandom(ahead.values, sizeof(ahead.values), 0);
        while (got < 0 && errno == EINTR);
        assert(got ==
               (ssize_t)sizeof(ahead.values)); /* up to 256 bytes come whole (getrandom(2)) */
        ahead.n = N_AHEAD;
    }
    value = ahead.values[--ahead.n];
    ahead.values[ahead.n] = 0;
    return value;
}

static char *put_hex(char *at, uint64_t value, size_t n_digits)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = n_digits; i-- > 0; value >>= 4)
        at[i] = digits[value & 15];
    return at + n_digits;
}

dv_str dv_random_uuid(char text[DV_UUID_BYTES])
{
    uint64_t high = dv_random_u64();
    uint64_t low = dv_random_u64();

    char *at = text;

    /* All bits are random but those of the version, 4, and of the variant, binary 10 (RFC 4122). */
    at = put_hex(at, high >> 32, 8);
    *at++ = '-';
    at = put_hex(at, high >> 16, 4);
    *at++ = '-';
    at = put_hex(at, 0x4000 | (high & 0xfff), 4);
    *at++ = '-';
    at = put_hex(at, 0x8000 | (low >> 48 & 0x3fff), 4);
    *at++ = '-';
    at = put_hex(at, low, 12);
    *at = '\0';
    return (dv_str){text, DV_UUID_BYTES - 1};
}

uint64_t dv_jitter(uint64_t delay, uint32_t per_mille)
{
    uint64_t spread = delay / 1000 * per_mille + delay % 1000 * per_mille / 1000;

    assert(per_mille <= 1000);
    if (spread == 0 || spread > UINT64_MAX / 4)
        return delay;
    return dv_u64_add_clamped(delay - spread, dv_random_u64() % (2 * spread + 1));
}
