/** Where a request has its API key. */
export interface Key {
  in: 'header' | 'query'
  name: string
  /** What stands before the key. */
  prefix: string
}

export interface Call {
  method: string
  url: string
  /** The API key that it needs; undefined for none. */
  key: Key | undefined
  headers: [name: string, value: string][]
  body: string | undefined
}

/** Each language with how it writes a call. */
export const languages: Record<'curl' | 'Node.js' | 'Python', (call: Call) => string>
