/** One operation: what it takes, what it answers, and a form that tries it. */
import {
  type Media,
  nameOf,
  type OpenApi,
  type OperationObject,
  type Parameter,
  type Response,
  resolve,
  toJson,
} from './document.ts'
import { type Html, html } from './html.ts'
import { phrase, prose } from './prose.ts'
import { content, fields, typeOf } from './schema.ts'

/** An operation, folded up; `docs.js` gives its form life. */
export function operation(
  document: OpenApi,
  method: string,
  path: string,
  object: OperationObject,
): Html {
  const { operationId: id, summary, description, deprecated = false } = object
  const address = html`<code class="path">${path}</code>`
  return html`
    <details class="entry operation" id="${id}">
      <summary>
        <h3>
          <span class="method ${method.toLowerCase()}">${method}</span>
          ${deprecated ? html`<s>${address}</s> <span class="deprecated">deprecated</span>` : address}
          <span class="title">${summary}</span>
        </h3>
      </summary>
      <div class="inside">
        <div class="reference">
          ${prose(description)}
          ${parameters(document, object)}
          ${body(document, object)}
          <h4>Answers</h4>
          ${answers(object)}
        </div>
        ${trial(document, method, path, object)}
      </div>
    </details>`
}

function parameters(document: OpenApi, { parameters = [] }: OperationObject): Html | undefined {
  if (parameters.length === 0) return
  const items = parameters.map(
    ({ in: place, name, required = false, description, schema = {} }) => ({
      name,
      place,
      required,
      description,
      schema,
    }),
  )
  return html`<h4>Parameters</h4>${fields(document, items)}`
}

function body(document: OpenApi, { requestBody }: OperationObject): Html | undefined {
  const schema = requestBody && media(requestBody.content)?.schema
  return schema && html`<h4>Body: ${typeOf(schema)}</h4>${content(document, schema)}`
}

const media = (content: Record<string, Media> = {}): Media | undefined => Object.values(content)[0]

// Errors are many and much the same everywhere, so they wait behind their numbers.
function answers({ responses }: OperationObject): Html {
  const all = Object.entries(responses)
  const errors = all.filter(([status]) => status >= '4')
  const others = all.filter(([status]) => status < '4')
  return html`
    ${others.map(([status, response]) => answer(status, response))}
    <details class="answer-kind">
      <summary><span>Errors: ${errors.map(([status]) => status).join(', ')}</span></summary>
      ${errors.map(([status, response]) => answer(status, response))}
    </details>`
}

function answer(status: string, { description, headers = {}, content = {} }: Response): Html {
  const { schema, example, examples = {} } = media(content) ?? {}
  const values = example === undefined ? Object.values(examples) : [{ value: example }]
  return html`
    <details class="answer-kind">
      <summary><code class="status s${status.slice(0, 1)}">${status}</code> <span>${phrase(description)}</span></summary>
      ${schema && html`<p>Body: ${typeOf(schema)}</p>`}
      ${values.map(({ value }) => html`<pre>${toJson(value)}</pre>`)}
      <p class="names">
        Headers:
        ${Object.entries(headers).map(
          ([name, { $ref }]) =>
            html`<a href="#header-${$ref === undefined ? name : nameOf($ref)}"><code>${name}</code></a> `,
        )}
      </p>
    </details>`
}

/** The form. Its samples and answers are made by `docs.js`, which is why it is hidden without. */
function trial(document: OpenApi, method: string, path: string, object: OperationObject): Html {
  const { operationId: id, parameters = [], requestBody, security = [] } = object
  const example = requestBody && media(requestBody.content)?.example
  return html`
    <form class="trial" aria-label="Try ${id}" data-method="${method}" data-path="${path}" hidden>
      <h4>Try it out</h4>
      ${
        security.length > 0
          ? html`
      <label for="${id}-key">API key</label>
      <input id="${id}-key" data-in="key" type="password" autocomplete="off" spellcheck="false">`
          : undefined
      }
      ${parameters.map((parameter) => input(document, `${id}-${parameter.name}`, parameter))}
      ${
        requestBody &&
        html`
      <label for="${id}-body">Body</label>
      <textarea id="${id}-body" data-in="body" rows="6" spellcheck="false" autocomplete="off">${
        example === undefined ? '' : toJson(example)
      }</textarea>`
      }
      <button type="submit">Send</button>
      <div class="answer" role="group" aria-label="Answer" hidden>
        <p role="status"></p>
        <pre></pre>
        <details><summary>Headers</summary><pre></pre></details>
      </div>
      <div class="samples"></div>
    </form>`
}

function input(document: OpenApi, id: string, parameter: Parameter): Html {
  const { in: place, name, required = false, schema = {} } = parameter
  const { enum: known, default: omitted } = resolve(document, schema)
  const attributes = html`id="${id}" name="${name}" data-in="${place}"`
  const label = html`<label for="${id}">${name}${required ? ' (required)' : ''}</label>`
  if (known && !required) {
    const options = known.map((value) => html`<option>${String(value)}</option>`)
    return html`${label}<select ${attributes}><option value=""></option>${options}</select>`
  }
  const hint = omitted === undefined ? '' : toJson(omitted)
  return html`${label}<input ${attributes} type="text" placeholder="${hint}" autocomplete="off" spellcheck="false"${
    required ? html` required` : undefined
  }>`
}
