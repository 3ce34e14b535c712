/* offer_glob.c - patterns of paths. */
#include "offer/offer.h"

/* Matches one character with the set that begins at pattern[at]; *next is set to what follows the
 * set. The set has its end: patterns without are refused when they are read. */
static bool in_set(dv_str pattern, size_t at, char c, size_t *next)
{
    bool is_negated = at + 1 < pattern.n && (pattern.p[at + 1] == '!' || pattern.p[at + 1] == '^');
    size_t i = at + 1 + is_negated;
    bool is_in = false;

    while (i < pattern.n && pattern.p[i] != ']') {
        bool is_range = i + 2 < pattern.n && pattern.p[i + 1] == '-' && pattern.p[i + 2] != ']';
        unsigned char from = (unsigned char)pattern.p[i];
        unsigned char to = (unsigned char)pattern.p[is_range ? i + 2 : i];

        is_in = is_in || ((unsigned char)c >= from && (unsigned char)c <= to);
        i += is_range ? 3 : 1;
    }
    *next = i + 1;
    return is_in != is_negated;
}

/* Whether pattern[at] stands for this character; *next is set to what follows it in the pattern. */
static bool matches_one(dv_str pattern, size_t at, char c, size_t *next)
{
    *next = at + 1;
    if (at >= pattern.n)
        return false;
    if (pattern.p[at] == '?')
        return c != '/';
    if (pattern.p[at] == '[')
        return in_set(pattern, at, c, next) && c != '/';
    return pattern.p[at] == c;
}

/* Goes back to the last star only: a star before it has nothing to gain. So the time is at most the
 * product of both lengths. */
bool dv_offer_glob(dv_str pattern, dv_str path)
{
    size_t behind_star = SIZE_MAX; /* the place in the pattern; SIZE_MAX: there was none */
    size_t end = 0;                /* of what the star stands for */
    size_t p = 0, t = 0, next;

    for (;;) {
        if (p < pattern.n && pattern.p[p] == '*') {
            behind_star = ++p;
            end = t;
        } else if (t == path.n) {
            return p >= pattern.n;
        } else if (matches_one(pattern, p, path.p[t], &next)) {
            p = next;
            t++;
        } else if (behind_star == SIZE_MAX || path.p[end] == '/') {
            return false;
        } else {
            p = behind_star;
            t = ++end;
        }
    }
}
