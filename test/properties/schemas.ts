/** Valid and invalid values for the schemas of the document. */
import fc from 'fast-check'
import { character, integer, name, oddJson } from './values.ts'

/** The part of JSON Schema that the document uses. Another keyword fails the test. */
export interface Schema {
  $ref?: string
  type?: string
  enum?: string[]
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  properties?: Record<string, Schema>
  anyOf?: Schema[]
  required?: string[]
}

const known = ['$ref', 'type', 'enum', 'format', 'minimum', 'maximum', 'minLength', 'maxLength']
const more = ['anyOf', 'pattern', 'properties', 'required', 'description', 'examples', 'default']

/** The schemas of a document, by the name in `$ref`. */
export type Schemas = Record<string, Schema>

function resolve({ $ref, ...schema }: Schema, schemas: Schemas): Schema {
  const named: Schema | undefined = $ref === undefined ? {} : schemas[$ref.split('/').at(-1) ?? '']
  const resolved = { ...named, ...schema }
  const strange = Object.keys(resolved).filter((keyword) => ![...known, ...more].includes(keyword))
  if (!named || strange.length > 0) throw new Error(`Not known yet: ${$ref ?? strange}`)
  return resolved
}

/** Returns whether a string is valid for a schema. */
function isValid(text: string, { minLength = 0, maxLength = Infinity, pattern = '' }: Schema) {
  const { length } = [...text] // JSON Schema counts code points
  return length >= minLength && length <= maxLength && new RegExp(pattern, 'u').test(text)
}

/** The pattern of a name has only the ASCII and Latin-1 part of this rule, which its description has in words. */
const isBlank = (text: string) =>
  /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(text)

// A schema cannot require well-formed Unicode, so these strings are all well-formed.
const text = fc
  .oneof(
    name,
    fc.string({ maxLength: 20 }),
    fc.string({ unit: fc.constantFrom('"', '\\', ' ', ',', 'a', 'é'), maxLength: 6 }),
    fc.tuple(fc.constantFrom('a', ' ', '"'), fc.nat(600)).map(([one, count]) => one.repeat(count)),
  )
  .filter((value) => value.isWellFormed())

/** Strings at the limits of length of a schema, and one character beyond them. */
const atEdges = ({ minLength = 0, maxLength = 100 }: Schema) =>
  fc
    .tuple(character, fc.constantFrom(minLength, maxLength), fc.constantFrom(-1, 0, 1))
    .map(([one, edge, step]) => one.repeat(Math.max(0, edge + step)))

/** The minimum and the maximum of an integer: its own, or those of its format. */
function rangeOf({ format, minimum, maximum }: Schema): { minimum: bigint; maximum: bigint } {
  if (format === 'int64') return { minimum: -(2n ** 63n), maximum: 2n ** 63n - 1n }
  if (minimum === undefined || maximum === undefined) throw new Error('An integer has no range')
  return { minimum: BigInt(minimum), maximum: BigInt(maximum) }
}

/** Values that are valid for the schema. */
export function valid(schema: Schema, schemas: Schemas): fc.Arbitrary<unknown> {
  const resolved = resolve(schema, schemas)
  const { type, pattern, properties = {}, required = [] } = resolved
  if (resolved.enum) return fc.constantFrom(...resolved.enum)
  if (resolved.anyOf) return fc.oneof(...resolved.anyOf.map((one) => valid(one, schemas)))
  if (type === 'null') return fc.constant(null)
  if (type === 'boolean') return fc.boolean()
  if (type === 'integer') {
    const { minimum: min, maximum: max } = rangeOf(resolved)
    const inside = fc.oneof(fc.constantFrom(min, max), fc.bigInt({ min, max }), integer)
    return inside.filter((value) => value >= min && value <= max)
  }
  if (type === 'string') {
    const matching = pattern === undefined ? [] : [fc.stringMatching(new RegExp(pattern))]
    return fc
      .oneof(text, atEdges(resolved), ...matching)
      .filter((value) => value.isWellFormed() && isValid(value, resolved) && !isBlank(value))
  }
  if (type === 'object') {
    const fields = Object.entries(properties).map(([field, one]) => [field, valid(one, schemas)])
    // The compiler knows the names only as strings, not as keys of the record.
    const requiredKeys = required as never[]
    // Unknown fields are allowed.
    const others = fc.dictionary(fc.constantFrom('colour', 'constructor', 'Name'), oddJson)
    return fc
      .tuple(others, fc.record(Object.fromEntries(fields), { requiredKeys }))
      .map(([other, own]) => ({ ...other, ...own }))
  }
  throw new Error(`Not known yet: ${JSON.stringify(resolved)}`)
}

/** Values that are invalid for the schema. */
export function invalid(schema: Schema, schemas: Schemas): fc.Arbitrary<unknown> {
  const resolved = resolve(schema, schemas)
  const { type, properties = {}, required = [] } = resolved
  const options = resolved.enum
  if (options)
    return fc
      .oneof(text, oddJson)
      .filter((value) => typeof value !== 'string' || !options.includes(value))
  if (resolved.anyOf) {
    const [one, other] = resolved.anyOf
    if (!one || other?.type !== 'null')
      throw new Error(`Not known yet: ${JSON.stringify(resolved)}`)
    return invalid(one, schemas).filter((value) => value !== null)
  }
  if (type === 'boolean')
    return fc.oneof(text, oddJson).filter((value) => typeof value !== 'boolean')
  if (type === 'integer') {
    const { minimum, maximum } = rangeOf(resolved)
    const isInside = (value: bigint) => value >= minimum && value <= maximum
    const outside = fc.constantFrom(minimum - 1n, maximum + 1n)
    return fc
      .oneof(outside, integer, text, oddJson)
      .filter((value) => !isInteger(value) || !isInside(BigInt(value)))
  }
  if (type === 'string')
    return fc
      .oneof(text, atEdges(resolved), oddJson)
      .filter((value) => typeof value !== 'string' || !isValid(value, resolved))
  if (type === 'object') {
    const whole = valid(resolved, schemas) as fc.Arbitrary<object> // only objects here
    const spoilt = Object.entries(properties).map(([field, one]) =>
      fc
        .tuple(whole, invalid(one, schemas))
        .map(([object, value]) => ({ ...object, [field]: value })),
    )
    const lacking = required.map((field) =>
      whole.map((object) =>
        Object.fromEntries(Object.entries(object).filter(([key]) => key !== field)),
      ),
    )
    const none = oddJson.filter(
      (value) => typeof value !== 'object' || value === null || Array.isArray(value),
    )
    return fc.oneof(...spoilt, ...lacking, none)
  }
  throw new Error(`Not known yet: ${JSON.stringify(resolved)}`)
}

const isInteger = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || Number.isInteger(value)
