/* object_row.h - what rows of the store have beside the protobuf of the API. */
#ifndef DV_RESOURCE_OBJECT_ROW_H
#define DV_RESOURCE_OBJECT_ROW_H

/* The members of a message that its table lacks, as JSON text: a number that no field has. */
#define DV_ROW_UNKNOWN 65535u
/* Of a raw JSON text: as it is, as in the API's protobuf; or packed (pack_fields.h). */
#define DV_ROW_RAW 1u
#define DV_ROW_PACKED 2u

#endif
