"""Kubernetes JSON to messages and back. Begin at ``convert``.

custom_objects custom objects: metadata and canonical JSON
descriptors    how a field looks in JSON, by its descriptor
go_json        JSON as Go keeps and writes it
go_members     which field of a message stands for a field of a Go struct
go_structs     Kubernetes' internal structs as Go's JSON encoder writes them
go_syntax      what Go's decoders say of texts that are no JSON, or no base64
go_values      what a message in Kubernetes' protobuf says, as Go reads it
json_operations  JSON Patch (RFC 6902) on documents
json_readers   from JSON values to the fields of messages: one table of setters for each message class
json_writers   from the fields of messages to JSON values: one writer for each field, made on first use
sizes          how many values an object that clients send may have, whatever its bytes
user_files     files that users name: regular ones, of a bounded size, as text
yaml_texts     YAML that clients send: read by libyaml, which is fast, after a look at its shape
"""
