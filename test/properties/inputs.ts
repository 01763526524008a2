/** Inputs of each operation, in the forms of REST and of tRPC. */
import fc from 'fast-check'
import type { OperationName } from '../support/operations.ts'
import {
  chooser,
  spelledDigits,
  spelledJson,
  spelledQuery,
  spelledText,
  spelling,
} from './spelling.ts'
import { int64, integer, name, noInteger, oddJson, wellFormed } from './values.ts'

/** One input, for all faces. */
export interface Given {
  operation: OperationName
  rest: { method: string; path: string; body?: string }
  trpc: unknown
}

/** The input that reads a pet. */
export const readingOf = (id: bigint): Given => ({
  operation: 'getPet',
  rest: { method: 'GET', path: `/pets/${id}` },
  trpc: { petId: id },
})

// Most fields of an input are valid; otherwise nearly all inputs would be rejected.
const mostly = <Good, Bad>(good: fc.Arbitrary<Good>, bad: fc.Arbitrary<Bad>) =>
  fc.oneof({ arbitrary: good, weight: 5 }, { arbitrary: bad, weight: 1 })

const status = fc.constantFrom('available', 'pending', 'sold')
const noStatus = fc.oneof(fc.constantFrom('', 'Sold', 'sold ', 'free', 'constructor'), wellFormed)
const unknownField = fc.constantFrom('colour', 'id', 'Name', 'constructor', 'toString', '', 'tag')

/** A small integer may be a number or a bigint on tRPC. */
function eitherInteger(value: unknown, isBig: boolean): unknown {
  if (typeof value === 'bigint' && !isBig) {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : value
  }
  return value
}

/** Inputs of createPet. */
export const creation: fc.Arbitrary<Given> = fc
  .tuple(
    fc.record(
      {
        name: mostly(name, oddJson),
        categoryId: mostly(mostly(int64, integer), oddJson),
        status: mostly(status, fc.oneof(noStatus, oddJson)),
      },
      { requiredKeys: [] },
    ),
    // Two of three inputs have all required fields.
    fc.oneof(fc.constant({}), fc.record({ name, categoryId: int64 })),
    fc.dictionary(unknownField, oddJson, { maxKeys: 2, noNullPrototype: true }),
    spelling,
    fc.boolean(),
  )
  .map(([fields, whole, unknown, choices, isBig]) => {
    const pet: Record<string, unknown> = { ...unknown, ...whole, ...fields }
    return {
      operation: 'createPet',
      rest: { method: 'POST', path: '/pets', body: spelledJson(pet, chooser(choices)) },
      trpc: { ...pet, categoryId: eitherInteger(pet.categoryId, isBig) },
    }
  })

/** A parameter of a URL: its strings there, and its value on tRPC. */
type Parameter = (choose: (count: number) => number) => { texts: string[]; value: unknown }

const textParameter = (text: fc.Arbitrary<string>): fc.Arbitrary<Parameter> =>
  text.map((value) => () => ({ texts: [value], value }))

const integerParameter = (
  values: fc.Arbitrary<bigint>,
  isInt64: boolean,
): fc.Arbitrary<Parameter> =>
  fc.tuple(values, fc.boolean()).map(([value, isBig]) => (choose) => ({
    texts: [spelledDigits(value, choose)],
    value: isInt64 ? eitherInteger(value, isBig) : Number(value),
  }))

const repeated: fc.Arbitrary<Parameter> = fc
  .array(fc.constantFrom('1', '7', 'sold', ''), { minLength: 2, maxLength: 3 })
  .map((texts) => () => ({ texts, value: texts }))

const nearLimit = fc.bigInt({ min: -1n, max: 102n })
const limit = mostly(
  integerParameter(fc.bigInt({ min: 1n, max: 100n }), false),
  fc.oneof(
    integerParameter(fc.oneof(nearLimit, integer), false),
    textParameter(noInteger),
    repeated,
  ),
)
const cursor = mostly(
  integerParameter(fc.oneof(fc.bigInt({ min: 0n, max: 130n }), int64), true),
  fc.oneof(integerParameter(integer, true), textParameter(noInteger), repeated),
)
const statusParameter = mostly(textParameter(status), fc.oneof(textParameter(noStatus), repeated))
const unknownParameter = fc.constantFrom('offset', 'Limit', 'limit[]', 'petId', 'constructor', '')

/** Inputs of listPets. */
export const listing: fc.Arbitrary<Given> = fc
  .tuple(
    fc.record({ limit, status: statusParameter, cursor }, { requiredKeys: [] }),
    fc.dictionary(unknownParameter, fc.oneof(textParameter(wellFormed), repeated), {
      maxKeys: 2,
      noNullPrototype: true,
    }),
    spelling,
    fc.boolean(),
  )
  .map(([known, unknown, choices, isReversed]) => {
    const choose = chooser(choices)
    const parameters = Object.entries({ ...unknown, ...known }).map(
      ([key, parameter]) => [key, parameter(choose)] as const,
    )
    const texts = parameters.flatMap(([key, { texts }]) =>
      texts.map((text): [string, string] => [key, text]),
    )
    const query = spelledQuery(isReversed ? texts.reverse() : texts, choose)
    const values = Object.fromEntries(parameters.map(([key, { value }]) => [key, value]))
    return {
      operation: 'listPets',
      rest: { method: 'GET', path: query === '' ? '/pets' : `/pets?${query}` },
      trpc: query === '' && isReversed ? undefined : values,
    }
  })

/** Inputs of getPet. */
export const reading: fc.Arbitrary<Given> = fc
  .tuple(
    fc.oneof(
      integerParameter(fc.oneof(fc.bigInt({ min: 0n, max: 130n }), int64), true),
      integerParameter(integer, true),
      // An empty segment or a dot segment is not a value of a path parameter.
      textParameter(noInteger.filter((text) => !/^\.{0,2}$/.test(text))),
    ),
    spelling,
  )
  .map(([parameter, choices]) => {
    const choose = chooser(choices)
    const { texts, value } = parameter(choose)
    const path = `/pets/${spelledText(texts[0] ?? '', choose)}`
    return { operation: 'getPet', rest: { method: 'GET', path }, trpc: { petId: value } }
  })

/** Inputs of the operations on pets, which have every kind of reader; kinds.once.test.ts has the other types. */
export const given: fc.Arbitrary<Given> = fc.oneof(
  { arbitrary: creation, weight: 3 },
  { arbitrary: listing, weight: 3 },
  { arbitrary: reading, weight: 1 },
)
