/** An OpenAPI 3.1 document with unusual and missing parts, which documents of other services may have. */
export const oddDocument = {
  openapi: '3.1.0',
  info: {
    title: 'Harbour <& "Ships">',
    version: '0.1',
    description: '![Map](map.png) ![](tide.png)\n\n## Tides\n\n### High\n\nTwice a day.',
  },
  tags: [{ name: 'Empty' }],
  security: [{ cookie: [] }],
  servers: [
    { url: 'https://harbour.example/api' },
    {
      url: 'https://berths.harbour.example/api/of/all/the/ships/at/sea/1.0.0',
      description: 'Second',
    },
  ],
  paths: {
    '/berths/{berth}': {
      summary: 'A path with parameters of its own',
      parameters: [
        {
          name: 'berth',
          in: 'path',
          required: true,
          schema: { type: 'string' },
          example: 'quay 1',
        },
        { $ref: '#/components/parameters/Session' },
      ],
      get: {
        description: '',
        parameters: [
          {
            name: 'berth',
            in: 'path',
            required: true,
            description: 'Replaces that of the path.',
            schema: { type: ['string', 'null'], enum: ['north pier', 'south', null] },
          },
          { name: 'filter', in: 'query', content: { 'text/x-sql': { schema: { format: 'sql' } } } },
        ],
        responses: {
          '200': {
            description: '',
            content: {
              'application/json': { schema: { $ref: '#/components/schemas/Berth' } },
              'text/csv': { schema: { type: 'string' }, example: 'berth,ship\nnorth,Ada' },
            },
          },
          '2XX': { $ref: '#/components/responses/Nothing' },
          default: { description: 'Anything else, see [Tides](#guide-tides)' },
        },
      },
      put: {
        operationId: 'replaceBerth',
        tags: ['Not <declared>', 'operations'],
        requestBody: { $ref: '#/components/requestBodies/Berth' },
        responses: { '204': { description: 'Replaced' } },
        security: [{ cookie: [] }],
      },
      delete: { operationId: 'clearBerth', deprecated: true, responses: {}, security: [] },
    },
    '/ships': {
      put: { operationId: 'moveShips', responses: {}, security: [{ header: [] }] },
      post: {
        operationId: 'upload',
        parameters: [
          {
            name: 'draft',
            in: 'query',
            deprecated: true,
            example: '3.5',
            schema: { type: 'string' },
          },
          { name: 'tide', in: 'header', schema: { enum: ['low', 'high'] } },
          { name: 'wait', in: 'query', schema: { type: 'boolean', default: false } },
        ],
        summary: 'Upload a `manifest`',
        'x-codeSamples': [{ lang: 'Shell', label: 'wget', source: 'wget …' }],
        requestBody: {
          description: 'A file, or its fields.',
          content: {
            'multipart/form-data': {
              schema: {
                type: 'object',
                properties: { file: { type: 'string', contentMediaType: 'application/pdf' } },
              },
            },
            'application/x-www-form-urlencoded': { schema: {} },
          },
        },
        responses: {
          '201': {
            description: 'Made',
            headers: {
              Location: { schema: { type: 'string' } },
              'X-Depth': { $ref: '#/components/headers/Plain' },
              'X-Loop': { $ref: '#/nowhere/at/all' },
            },
            content: {
              'application/json': { examples: { made: { $ref: '#/components/examples/Made' } } },
            },
          },
        },
        security: [{ query: [] }, {}],
      },
    },
    '/empty': {},
    '/referred': { $ref: '#/components/pathItems/~01' },
  },
  components: {
    parameters: { Session: { name: 'session', in: 'cookie', schema: { type: 'string' } } },
    responses: { Nothing: { description: 'There is no body' } },
    requestBodies: {
      Berth: {
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Berth' } } },
      },
    },
    pathItems: {
      '~1': {
        get: {
          operationId: 'referred',
          security: [{ basic: [] }],
          responses: { '200': { description: 'Fine' } },
        },
      },
    },
    schemas: {
      Berth: {
        type: 'object',
        required: ['ship'],
        properties: {
          ship: { oneOf: [{ $ref: '#/components/schemas/Ship' }, { type: 'null' }] },
          neighbours: {
            type: 'array',
            items: { $ref: '#/components/schemas/Berth' },
            uniqueItems: true,
          },
          guard: { allOf: [{ $ref: '#/components/schemas/Named' }, { type: 'object' }] },
          position: {
            type: 'array',
            prefixItems: [{ type: 'number' }, { type: 'number' }],
            items: false,
            minItems: 2,
          },
          notes: { type: 'object', additionalProperties: { type: 'string', maxLength: 80 } },
          depth: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 500, multipleOf: 0.5 },
          lit: { type: 'boolean', default: false },
          number: {
            type: 'integer',
            format: 'int64',
            writeOnly: true,
            deprecated: true,
            minimum: 1,
            maximum: JSON.rawJSON('9223372036854775807'),
          },
        },
      },
      Ship: {
        description: 'Has [a name](#schema-Named), and ![a <flag>](flag.png).',
        allOf: [
          { $ref: '#/components/schemas/Named' },
          { type: 'object', properties: { length: { type: 'integer' } }, required: ['length'] },
        ],
        anyOf: [
          { title: 'A ferry', properties: { cars: { type: 'integer' } } },
          { $ref: '#/components/schemas/Named' },
        ],
      },
      Named: {
        description: 'What has a name.',
        required: ['name'],
        properties: { name: { type: 'string', readOnly: true, examples: ['Ada'] } },
      },
      Circle: { $ref: '#/components/schemas/Ring' },
      Ring: { $ref: '#/components/schemas/Circle' },
      Loop: { allOf: [{ $ref: '#/components/schemas/Loop' }] },
      Anything: true,
      Nothing: false,
      'With.dots-and_more': { const: 'x' },
    },
    examples: { Made: { value: { id: 'S-1' } } },
    headers: { Plain: { schema: { type: 'integer' } } },
    securitySchemes: {
      cookie: { type: 'apiKey', in: 'cookie', name: 'sid' },
      query: { type: 'apiKey', in: 'query', name: 'api_key' },
      header: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
      basic: { type: 'http', scheme: 'Basic' },
      oauth: { type: 'oauth2', flows: {} },
    },
  },
}
