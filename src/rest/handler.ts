/** REST: every operation as one handler, compiled at the start. */
import { type ParsedUrlQuery, parse as parseQuery } from 'node:querystring'
import { TRPCError } from '@trpc/server'
import type { Request, RequestHandler, Response } from 'express'
import type { Calls } from '../calls.ts'
import {
  errorHeaders,
  malformed,
  methodNotSupported,
  notFound,
  toApiError,
  toTRPCError,
  unauthorized,
} from '../errors.ts'
import { answer } from '../http/answer.ts'
import { readBody } from '../http/body.ts'
import { emptyHeaders, jsonHeaders, privateHeaders } from '../http/headers.ts'
import { checkHost, targetBelow } from '../http/request.ts'
import { setOperation } from '../http/telemetry.ts'
import type { Auth } from '../keys/auth.ts'
import type { Context } from '../trpc.ts'
import { parseJson } from './codec.ts'
import { linksOf } from './links.ts'
import type { Operation } from './operations.ts'
import { matcher } from './routes.ts'

type Handler = (
  req: Request,
  res: Response,
  inPath: string[],
  query: string,
) => Promise<void> | void

/** The path below which REST is found. */
export const PREFIX = '/v1'

/**
 * Serves the operations below `/v1`, and the document of them at `/v1/openapi.json`; all other
 * addresses are passed on. `baseUrl` is the public address of `/v1`, for the links.
 */
export function restHandler(
  operations: Operation[],
  { document, baseUrl, calls }: { document: () => Promise<string>; baseUrl: string; calls: Calls },
): RequestHandler {
  const describe: Handler = async (_req, res) => answer(res, 200, jsonHeaders, await document())
  const match = matcher([
    { path: '/openapi.json', method: 'GET', served: describe },
    ...operations.map((operation) => ({
      path: operation.path,
      method: operation.method,
      served: operationHandler(operation, baseUrl, calls),
    })),
  ])
  return (req, res, next) => {
    const target = targetBelow(PREFIX, req)
    if (!target) return next()
    const matched = match(target.path)
    if (!matched) return fail(res, calls, notFound(), jsonHeaders)
    const { methods, allow, inPath } = matched
    const handle = methods.get(req.method)
    if (handle) return handle(req, res, inPath, target.query)
    const headers = [...jsonHeaders, 'Allow', allow]
    fail(res, calls, methodNotSupported(req.method, allow), headers)
  }
}

/** One operation, from the request to the answer. */
function operationHandler(operation: Operation, baseUrl: string, calls: Calls): Handler {
  const { name, procedure, status, write } = operation
  const { type } = procedure._def
  const deprecation = deprecationHeaders(operation, baseUrl)
  const headers = [...privateHeaders, ...deprecation]
  const successHeaders = status === 204 ? [...emptyHeaders, ...deprecation] : headers
  const linksTo = linksOf(operation, baseUrl)
  return async (req, res, inPath, query) => {
    setOperation(res, 'rest', name)
    let context: Context | undefined
    try {
      checkHost(req)
      context = await calls.begin(res, 1)
      if (context.auth.kind !== 'caller') throw unauthorized(context.auth)
      const parameters = query === '' ? undefined : parseQuery(query, '&', '=', { maxKeys: 0 })
      const body = operation.readBody && (await readBody(req, res))
      // Read when it is asked for: whether the key may do this comes first.
      let input: Record<string, unknown> = {}
      const getRawInput = async () => {
        input = readInput(operation, inPath, parameters, body)
        return input
      }
      const output = await procedure({
        ctx: context,
        getRawInput,
        path: name,
        type,
        signal: undefined,
        batchIndex: 0,
      })
      const links = linksTo(input, output, context.page.next)
      const all = links.length > 0 ? [...successHeaders, ...links] : successHeaders
      answer(res, status, all, status === 204 ? '' : write(output))
    } catch (thrown) {
      fail(res, calls, thrown, headers, context?.auth)
    } finally {
      context?.deadline.clear()
    }
  }
}

/** Answers with the Error body. */
function fail(
  res: Response,
  calls: Calls,
  thrown: unknown,
  headers: readonly string[],
  auth?: Auth,
): void {
  const error = toTRPCError(thrown)
  const body = toApiError(error)
  calls.report(error, res)
  answer(res, body.status, [...headers, ...errorHeaders(error, auth)], JSON.stringify(body))
}

function readInput(
  operation: Operation,
  inPath: string[],
  query: ParsedUrlQuery | undefined,
  body: string | undefined,
): Record<string, unknown> {
  const input = operation.readBody ? readObject(operation, body) : {}
  let index = 0
  for (const [name, read] of operation.pathParameters) {
    input[name] = read(decode(name, inPath[index++] as string)) // the pattern has as many groups
  }
  if (query === undefined) return input
  for (const [name, read] of operation.queryParameters) {
    const value = read(query[name])
    if (value !== undefined) input[name] = value
  }
  return input
}

function decode(name: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    const message = `${name} must be percent-encoded UTF-8`
    throw new TRPCError({ code: 'BAD_REQUEST', message, cause: new TypeError(message, { cause }) })
  }
}

function readObject({ readBody }: Operation, text: string | undefined): Record<string, unknown> {
  if (!text) throw badBody('The body is missing: it must be a JSON object')
  const value = parseBody(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badBody('The body must be a JSON object')
  }
  return readBody?.(value) as Record<string, unknown> // the reader of an object gives one
}

function parseBody(text: string): unknown {
  try {
    return parseJson(text)
  } catch (cause) {
    throw malformed(cause)
  }
}

const badBody = (message: string) => new TRPCError({ code: 'BAD_REQUEST', message })

/**
 * Headers of every answer of a deprecated operation: since when (RFC 9745), until when (RFC 8594),
 * and what to use instead (RFC 5829).
 */
function deprecationHeaders({ deprecated }: Operation, baseUrl: string): string[] {
  if (!deprecated) return []
  const { since, sunset, successor } = deprecated
  return [
    'Deprecation',
    `@${since.getTime() / 1000}`,
    'Sunset',
    sunset.toUTCString(),
    'Link',
    `<${baseUrl}${successor}>; rel="successor-version"`,
  ]
}
