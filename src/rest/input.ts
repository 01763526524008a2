/** The input of a REST call: its query or body, and what its path says. */
import { TRPCError } from '@trpc/server'
import type { Request } from 'express'
import type { OpenAPIObject } from 'trpc-to-openapi'
import { parseJson } from './json.ts'
import { hasBody, type Operation } from './operations.ts'

type Input = Record<string, unknown>

/**
 * A function that assembles the inputs of an operation. Text of the address becomes an integer
 * only where the document says that the parameter is one and only if it is written as one; all
 * else is left for the schema to refuse. It throws BAD_REQUEST or PARSE_ERROR for a body that is
 * not a JSON object.
 */
export function inputReader(
  operation: Operation,
  document: OpenAPIObject,
): (req: Request) => Input {
  const object = document.paths?.[operation.path]?.[operation.method.toLowerCase() as 'get']
  const parameters = ((object?.parameters ?? []) as Parameter[]).filter(
    (parameter) => parameter.in !== 'header',
  )
  return (req) => {
    const input: Input = hasBody(operation) ? jsonObject(req.body) : {}
    for (const { name, in: place, schema } of parameters) {
      const text = place === 'path' ? req.params[name] : req.query[name]
      if (text !== undefined) input[name] = fromText(text, schema)
    }
    return input
  }
}

interface Parameter {
  name: string
  in: string
  schema: { type?: string; format?: string }
}

function fromText(text: unknown, { type, format }: Parameter['schema']): unknown {
  if (type !== 'integer' || typeof text !== 'string' || !/^-?\d+$/.test(text)) return text
  return format === 'int64' ? BigInt(text) : Number(text)
}

function jsonObject(text: unknown): Input {
  const value = typeof text === 'string' && text !== '' ? parseJson(text) : undefined
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Input
  const message =
    value === undefined
      ? 'The body is missing: it must be a JSON object'
      : 'The body must be a JSON object'
  throw new TRPCError({ code: 'BAD_REQUEST', message })
}
