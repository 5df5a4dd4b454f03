"""What a patch makes of an object. Begin at ``patches``.

patches           patches of an object: merge patch (RFC 7386) and strategic merge patch as JSON
json_patches      JSON Patch (RFC 6902) as ``gopkg.in/evanphx/json-patch.v4`` has it
strategic_merges  strategic merge patches of JSON, as ``apimachinery/pkg/util/strategicpatch`` applies them
"""
