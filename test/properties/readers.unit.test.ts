/** REST writes and reads back any value of any schema. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  dateTimeInput,
  dateTimeOutput,
  int64Input,
  int64Output,
} from '../../src/procedure/fields.ts'
import { replaceBigints } from '../../src/surface/rest/exact-json.ts'
import { parseJson, readerOf } from '../../src/surface/rest/readers.ts'
import { hold, TIMEOUT, tellSeed } from './cases.ts'
import { int64 } from './values.ts'

tellSeed()

/** A schema on both sides of a procedure, and its values. */
interface Kind {
  input: z.ZodType
  output: z.ZodType
  value: fc.Arbitrary<unknown>
}

const same = (schema: z.ZodType, value: fc.Arbitrary<unknown>): Kind => ({
  input: schema,
  output: schema,
  value,
})
const meta = { description: 'Any.' }
const date = fc.date({
  min: new Date('0000-01-01T00:00:00.000Z'),
  max: new Date('9999-12-31T23:59:59.999Z'),
  noInvalidDate: true,
})
const scalars: Kind[] = [
  { input: int64Input(meta), output: int64Output(meta), value: int64 },
  { input: dateTimeInput(meta), output: dateTimeOutput(), value: date },
  same(z.int(), fc.maxSafeInteger().map(withoutSign)),
  same(z.number(), fc.double({ noNaN: true, noDefaultInfinity: true }).map(withoutSign)),
  same(z.string(), fc.string()),
  same(z.boolean(), fc.boolean()),
  same(z.enum(['one', 'two']), fc.constantFrom('one', 'two')),
  same(z.literal(['one', 1.5, true, null]), fc.constantFrom('one', 1.5, true, null)),
]

/** JSON has no negative zero. */
function withoutSign(value: number): number {
  return value === 0 ? 0 : value
}

type Fields = Record<string, Kind>

const object = (fields: Fields): Kind => {
  const side = (of: 'input' | 'output') =>
    z.object(Object.fromEntries(Object.entries(fields).map(([name, kind]) => [name, kind[of]])))
  const values = Object.entries(fields).map(([name, { value }]) => [name, value])
  return {
    input: side('input'),
    output: side('output'),
    value: fc.record(Object.fromEntries(values)),
  }
}

const optional = ({ input, output, value }: Kind): Kind => ({
  input: input.optional(),
  output: output.optional(),
  value: fc.option(value, { nil: undefined }),
})

const name = fc.constantFrom('a', 'b', 'first-name', 'ä', '"')
const { kind } = fc.letrec<{ kind: Kind; fields: Fields }>((tie) => ({
  fields: fc.dictionary(name, fc.oneof(tie('kind'), tie('kind').map(optional)), { maxKeys: 3 }),
  kind: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(...scalars),
    tie('kind').map(({ input, output, value }) => ({
      input: z.array(input),
      output: z.array(output),
      value: fc.array(value, { maxLength: 3 }),
    })),
    tie('kind').map(({ input, output, value }) => ({
      input: z.record(z.string(), input),
      output: z.record(z.string(), output),
      value: fc.dictionary(name, value, { maxKeys: 3, noNullPrototype: true }),
    })),
    tie('kind').map(({ input, output, value }) => ({
      input: z.preprocess((any) => any, input),
      output,
      value,
    })),
    tie('kind').map(({ input, output, value }) => ({
      input: input.nullable(),
      output: output.nullable(),
      value: fc.option(value, { nil: null }),
    })),
    tie('fields').map(object),
  ),
}))

test('each value of a schema is read as it was written', { timeout: TIMEOUT }, async () => {
  const some = kind.chain(({ input, output, value }) =>
    fc.record({ input: fc.constant(input), output: fc.constant(output), value }),
  )
  await hold(
    fc.asyncProperty(some, async ({ input, output, value }) => {
      const { read } = readerOf(input, 'It')
      const text = JSON.stringify(replaceBigints(output.parse(value)))
      expect(input.parse(read(parseJson(text))), text).toEqual(value)
    }),
    5,
  )
})
