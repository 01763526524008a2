/** Writes JSON answers. */
import type { Response } from 'express'

/** Answers with a JSON text, as `application/json` without parameters (RFC 8259 defines none). */
export function sendJson(res: Response, status: number, text: string): void {
  res.status(status).setHeader('Content-Type', 'application/json').end(text)
}
