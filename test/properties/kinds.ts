/** A procedure whose body has all kinds of fields that CONTRIBUTING names, in lists and objects, too. */
import { z } from 'zod'
import { dateTimeInput, int64Input, textInput } from '../../src/procedure/fields.ts'
import { router } from '../../src/procedure/procedure.ts'
import { write } from '../../src/procedure/write.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'

const line = z.object({
  name: textInput({ description: 'A text.' }, 40),
  code: z
    .string()
    .regex(/^[A-Z]{2}[0-9]{1,4}$/)
    .max(6)
    .nullable(),
  count: z.int().min(1).max(99),
  price: z.number().min(0).max(1e6).optional(),
  isGift: z.boolean().default(false),
  size: z.enum(['s', 'm', 'l']).default('m'),
  since: dateTimeInput({ description: 'A time.' }).nullable().default(null),
  tags: z
    .array(textInput({ description: 'A tag.' }, 20))
    .max(3)
    .optional(),
})

const rule = 'must be above 1 for the size l'
const Line = line.refine(({ count, size }) => count > 1 || size !== 'l', {
  path: ['count'],
  error: rule,
})

const Kinds = z
  .object({
    place: textInput({ description: 'A place.' }),
    lines: z.array(Line).min(1).max(5),
    ids: z.array(int64Input({ description: 'An id.' })).max(20),
    flags: z.array(z.boolean()).min(2).max(3).nullable().optional(),
    one: line.pick({ name: true, since: true }).optional(),
    mail: z.email().optional(),
    key: z.uuid().optional(),
    day: z.iso.date().optional(),
    page: z.url().optional(),
    unit: z.literal('cm').optional(),
    // V8 13.6 misreads a name of one character that is escaped: `{"a":0,"\u0022":0}`.
    sizes: z.record(z.string().min(2).max(9), z.int().min(0).max(9)).optional(),
  })
  .meta({ id: 'Kinds' })

const exampleInput = { lines: [{ name: 'Ball', code: null, count: 1 }], ids: [7] }

export const kinds = resourcesOf(
  router({
    keepKinds: procedure
      .meta(described('PUT', '/kinds/{place}', { exampleInput, rules: [`lines.0.count ${rule}`] }))
      .input(Kinds)
      .output(z.void())
      .mutation(({ ctx }) => write(ctx, async () => {})),
  }),
)
