/* number_text.h - doubles as text, as the reference writes and reads them. */
#ifndef DV_CEL_NUMBER_TEXT_H
#define DV_CEL_NUMBER_TEXT_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

/* The longest: 2^-1074 without an exponent, in its fewest digits. */
#define DV_CEL_NUMBER_BYTES 352

/* Prints the fewest digits that read back as the same number: with an exponent when that is below
 * -4 or above 5, or never. "NaN", "+Inf", "-Inf". */
void dv_cel_print_double(double value, char text[DV_CEL_NUMBER_BYTES]);
void dv_cel_print_fixed(double value, char text[DV_CEL_NUMBER_BYTES]);
/* Prints a number as it can stand in an expression: finite, and always with a point or an
 * exponent. */
void dv_cel_print_literal(double value, char text[DV_CEL_NUMBER_BYTES]);

/* Parses decimal or hexadecimal, inf, infinity, nan; false for other text and for numbers that are
 * too large. */
DV_CHECKED bool dv_cel_parse_double(dv_str text, double *value);

#endif
