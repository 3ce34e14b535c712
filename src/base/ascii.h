/* ascii.h - what a character of ASCII is, whatever the locale says. Bytes beyond it are none of
 * these. */
#ifndef DV_BASE_ASCII_H
#define DV_BASE_ASCII_H

#include <stdbool.h>

static inline bool dv_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool dv_is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}
static inline bool dv_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static inline bool dv_is_letter(char c)
{
    return dv_is_lower(c) || dv_is_upper(c);
}
/* Whether the character may be in a label of a DNS name, apart from the dash. */
static inline bool dv_is_lower_or_digit(char c)
{
    return dv_is_lower(c) || dv_is_digit(c);
}
static inline bool dv_is_alphanumeric(char c)
{
    return dv_is_letter(c) || dv_is_digit(c);
}
static inline char dv_to_lower(char c)
{
    return (char)(dv_is_upper(c) ? c - 'A' + 'a' : c);
}

/* The value of a hexadecimal digit of either case; -1 for other characters. */
static inline int dv_hex_value(char c)
{
    if (dv_is_digit(c))
        return c - '0';
    c = dv_to_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
static inline bool dv_is_hex(char c)
{
    return dv_hex_value(c) >= 0;
}

#endif
