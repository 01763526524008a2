/** The schemas of bodies in the OpenAPI document, which never have a `default`. */

/** A part of JSON Schema, as the generator writes it. */
interface Schema {
  $ref?: string
  default?: unknown
  description?: string
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
}

/**
 * Moves each `default` of a body, of its objects and of its lists, into the description of the field. Generators such
 * as openapi-typescript make a field with a default required, because an answer has it; so a release that added such
 * a field to a body would break their callers. `schemas` are those of the document, by the name in `$ref`.
 */
export function describeDefaults(schema: Schema, schemas: Record<string, Schema>): void {
  const done = new Set<Schema>()
  const visit = (one: Schema | boolean | undefined): void => {
    if (typeof one !== 'object' || done.has(one)) return
    done.add(one)
    if (one.$ref !== undefined) visit(schemas[one.$ref.replace('#/components/schemas/', '')])
    const { properties = {}, items, additionalProperties, anyOf = [], oneOf = [], allOf = [] } = one
    for (const part of [...Object.values(properties), items, additionalProperties]) visit(part)
    for (const part of [...anyOf, ...oneOf, ...allOf]) visit(part)
    if (one.default === undefined) return
    const value = typeof one.default === 'string' ? one.default : JSON.stringify(one.default)
    one.description = [one.description, `Default: \`${value}\`.`].filter(Boolean).join(' ')
    delete one.default
  }
  visit(schema)
}
