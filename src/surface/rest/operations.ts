/**
 * The operations of REST: each is made at the start, from a procedure and its `restMeta`. The surface,
 * the document, `Allow` and CORS depend on nothing else. A description that contradicts its procedure is
 * an error at the start.
 */
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import { makerOf } from '../../procedure/resolver.ts'
import { definitionOf } from '../invoke.ts'
import { type Codec, codecOf, nothing, object } from './codec.ts'
import { parametersOf } from './routes.ts'

export type Operation = ReturnType<typeof operationOf>

/** Returns the operations of a router. Throws TypeError for a contradictory description. */
export const operationsOf = (router: AnyTRPCRouter): Operation[] =>
  Object.entries<AnyTRPCProcedure>(router._def.procedures).map(operationOf)

/** Characters of a name, which is kept with each Idempotency-Key. */
const MAX_NAME = 64

function operationOf([name, procedure]: [string, AnyTRPCProcedure]) {
  const { type, meta, inputs, output, resolver } = definitionOf(procedure)
  function need(condition: unknown, what: string): asserts condition {
    if (!condition) throw new TypeError(`The procedure ${name} ${what}`)
  }
  need(name.length <= MAX_NAME, `has a name of more than ${MAX_NAME} characters`)
  const [input] = inputs
  const rest = meta?.rest
  need(
    rest && input && inputs.length === 1 && output,
    'needs .meta(restMeta({ … })), one .input(…) and an .output(…)',
  )
  const { method, path, paged, creates, repeatable } = rest
  const isQuery = method === 'GET'
  const maker = makerOf(resolver)
  const takesKey = creates !== undefined || repeatable === true
  need(isQuery === (type === 'query'), `is a ${type}, which does not fit the method ${method}`)
  need(
    isQuery === (maker === undefined || maker === 'paged'),
    'must be made by write(…) or idempotentWrite(…) if it is a mutation, and by neither if it is a query',
  )
  need(
    takesKey === (maker === 'idempotentWrite'),
    'must say `creates` or `repeatable` and use idempotentWrite(…), or neither',
  )
  need(!paged === (maker !== 'paged'), 'must say `paged` and use paged(…), or neither')

  const inputCodec = codecOf(input, 'input', `The input of ${name}`)
  const outputCodec = codecOf(output, 'output', `The output of ${name}`)
  const others = new Map(inputCodec.fields)
  const inPath = parametersOf(path).map((field): [string, Codec] => {
    const codec = others.get(field)
    need(codec, `has {${field}} in its path, which its input lacks`)
    others.delete(field)
    return [field, codec]
  })
  const madeOf = new Map([...inPath, ...(outputCodec.fields ?? [])])
  for (const field of parametersOf(creates ?? ''))
    need(madeOf.has(field), `creates {${field}}, which its output and its path lack`)
  const hasBody = !isQuery && method !== 'DELETE' && others.size > 0
  const readers = (fields: Iterable<[string, Codec]>) =>
    new Map(
      [...fields].map(([field, { readText }]) => {
        need(readText, `has ${field} in its URL, in a type that no URL can have`)
        return [field, readText]
      }),
    )
  const { write = (value: unknown) => value } = outputCodec
  return {
    ...rest,
    /** The name of the procedure, and the operationId in the document. */
    name,
    procedure,
    type,
    input,
    /** The readers of the input's fields in the path and the query, by name. */
    pathParameters: readers(inPath),
    queryParameters: readers(hasBody ? [] : others),
    /** Converts a JSON body; undefined if the operation has none. */
    readBody: hasBody ? object([...others]).read : undefined,
    /** The status of a success. */
    status: creates !== undefined ? 201 : outputCodec === nothing ? 204 : 200,
    /** Converts an output for JSON.stringify. */
    write,
    /** Whether the operation supports Idempotency-Key. */
    takesKey,
  }
}
