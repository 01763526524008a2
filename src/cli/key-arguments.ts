/** The arguments of `npm run keys`. */
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { duration } from '../config/config.ts'
import { UsageError } from '../config/environment.ts'
import { textInput } from '../procedure/fields.ts'

const ID = z
  .string('is missing (see list)')
  .refine(
    (text) => /^\d+$/.test(text) && BigInt(text) < 2n ** 63n,
    'must be that of a key (see list)',
  )
  .transform(BigInt)
const flag = z.boolean('takes no value').default(false)
const takes = <Fields extends z.ZodRawShape>(fields: Fields) =>
  z.strictObject({ ...fields, json: flag }, { error: (issue) => `takes no ${issue.keys}` })

const NO_END =
  'must have --expires DURATION or --forever, as in npm run keys -- create NAME --expires 90d (npm takes what has no -- before it)'

const Arguments = z.discriminatedUnion(
  'COMMAND',
  [
    takes({
      COMMAND: z.literal('create'),
      NAME: textInput({ description: '' }), // as that of a pet
      expires: duration('1ms').optional(),
      forever: flag,
      'read-only': flag,
      'if-none': flag,
      'key-file': z.string('takes a FILE').min(1, 'takes a FILE').optional(),
    })
      // A key without an end is asked for in words: npm may have taken an --expires.
      .refine(({ expires, forever }) => expires !== undefined || forever, NO_END)
      .refine(
        ({ expires, forever }) => expires === undefined || !forever,
        'takes --expires or --forever, not both',
      ),
    takes({ COMMAND: z.literal('list') }),
    takes({ COMMAND: z.literal('rotate'), ID, grace: duration('0s').prefault('24h') }),
    takes({ COMMAND: z.literal('revoke'), ID }),
  ],
  'must be create, list, rotate or revoke',
)

/** Returns the command of these words, with what it needs. Throws UsageError. */
export function readArguments(args: string[]) {
  const [text, toggle] = [{ type: 'string' }, { type: 'boolean' }] as const
  const options = {
    ...{ expires: text, grace: text, 'key-file': text },
    ...{ forever: toggle, 'read-only': toggle, 'if-none': toggle, json: toggle },
  }
  const { positionals, values } = parseArgs({
    args,
    strict: false,
    allowPositionals: true,
    options,
  })
  const [COMMAND, operand, second] = positionals
  const { data, error } = Arguments.safeParse({
    COMMAND,
    ...(operand !== undefined && { [COMMAND === 'create' ? 'NAME' : 'ID']: operand }),
    ...(second !== undefined && { 'second argument: put quotes around a name': second }),
    ...values,
  })
  if (data) return data
  const [issue] = error.issues as [z.core.$ZodIssue] // an error has an issue
  throw new UsageError(`${String(issue.path[0] ?? COMMAND)} ${issue.message}; see --help`)
}
