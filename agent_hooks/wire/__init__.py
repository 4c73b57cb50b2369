"""JSON types ↔ protobuf messages: one codec, used by both ends."""
