/**
 * The operations of REST: each is made at the start, from a procedure and its `restMeta`. The surface,
 * the document, `Allow` and CORS depend on nothing else.
 */
import type { AnyTRPCRouter } from '@trpc/server'
import { z } from 'zod'
import { emptyHeaders, jsonHeaders } from '../../http/headers.ts'
import { type Procedure, proceduresOf } from '../../procedure/procedure.ts'
import { readerOf } from './values.ts'

export type Operation = ReturnType<typeof operationOf>

const PREFIX = '/v1'

/** A parameter of a path template, such as `/pets/{petId}`. */
export const PARAMETER = /\{(.+?)\}/g

const parametersOf = (path: string) => [...path.matchAll(PARAMETER)].map(([, name = '']) => name)

/**
 * Returns the operations of a router; `baseUrl` is the public URL of `/v1`, for links. Throws TypeError for
 * a description that contradicts its procedure.
 */
export function operationsOf(router: AnyTRPCRouter, baseUrl: string): Operation[] {
  const operations = proceduresOf(router).map((procedure) => operationOf(procedure, baseUrl))
  const placeOf = (path: string) => path.replaceAll(PARAMETER, '{}')
  const places = operations.map(({ path }) => placeOf(path))
  const wrong = operations.find(({ creates }) => creates && !places.includes(placeOf(creates)))
  if (!wrong) return operations
  throw new TypeError(
    `The procedure ${wrong.name} creates ${wrong.creates}, the path of no procedure`,
  )
}

/** Characters of a name, which is kept with each Idempotency-Key. */
const MAX_NAME = 64

function operationOf({ name, type, rest, input, output, maker, run }: Procedure, baseUrl: string) {
  const { method, path, creates, deprecated } = rest
  function need(condition: unknown, what: string): asserts condition {
    if (!condition) throw new TypeError(`The procedure ${name} ${what}`)
  }
  need(name.length <= MAX_NAME, `has a name of more than ${MAX_NAME} characters`)
  need(
    (method === 'GET') === (type === 'query'),
    `is a ${type}, which does not fit the method ${method}`,
  )
  const { fields = {}, read } = readerOf(input, `The input of ${name}`)
  const inPath = parametersOf(path)
  const others = Object.keys(fields).filter((field) => !inPath.includes(field))
  const made = output instanceof z.ZodObject ? output.shape : {}
  for (const field of parametersOf(creates ?? '')) {
    const isKnown = field in made || inPath.includes(field)
    need(isKnown, `creates {${field}}, which its output and its path lack`)
  }
  const readsBody = method !== 'GET' && method !== 'DELETE' && others.length > 0
  const readersOf = (names: string[]) =>
    names.map((field): [name: string, read: (text: string) => unknown] => {
      const readText = fields[field]?.readText
      need(readText, `needs {${field}} in its input, in a type that a URL can have`)
      return [field, readText]
    })
  /** The status of a success. */
  const status = creates !== undefined ? 201 : output.def.type === 'void' ? 204 : 200
  // RFC 9745, RFC 8594 and RFC 5829
  const deprecation = deprecated
    ? [
        ...['Deprecation', `@${Math.floor(deprecated.since.getTime() / 1000)}`],
        ...['Sunset', deprecated.sunset.toUTCString()],
        ...['Link', `<${baseUrl}${deprecated.successor}>; rel="successor-version"`],
      ]
    : []
  return {
    ...rest,
    name,
    type,
    input,
    /** Calls the procedure. */
    run,
    baseUrl,
    route: PREFIX + path,
    /** The path template and that of `Location`: texts and the names of parameters in turn. */
    pathTemplate: path.split(PARAMETER),
    locationTemplate: creates?.split(PARAMETER),
    calls: 1,
    status,
    headers: [...jsonHeaders, ...deprecation],
    headersOfSuccess: [...(status === 204 ? emptyHeaders : jsonHeaders), ...deprecation],
    /** The readers of the input's fields in the path and the query. */
    pathParameters: readersOf(inPath),
    queryParameters: readersOf(readsBody ? [] : others),
    readsBody,
    /** Reads a JSON body. */
    read,
    /** Whether `Link` has the URL of the next page. */
    isPaged: maker === 'paged',
    /** Whether the operation supports Idempotency-Key. */
    takesKey: maker === 'idempotentWrite',
  }
}
