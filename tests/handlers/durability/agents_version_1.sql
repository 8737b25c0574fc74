BEGIN TRANSACTION;
CREATE TABLE agent_fields (
                agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
                name TEXT NOT NULL,
                value TEXT NOT NULL,
                PRIMARY KEY (agent, name)
            );
INSERT INTO "agent_fields" VALUES(1,'notes','["likes tea"]');
INSERT INTO "agent_fields" VALUES(1,'mood','"calm"');
INSERT INTO "agent_fields" VALUES(2,'notes','[]');
INSERT INTO "agent_fields" VALUES(2,'mood','"calm"');
CREATE TABLE agent_messages (
                number INTEGER PRIMARY KEY AUTOINCREMENT,
                agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
                place INTEGER NOT NULL,
                message TEXT NOT NULL,
                UNIQUE (agent, place)
            );
INSERT INTO "agent_messages" VALUES(1,1,0,'{"role":"user","content":"# ask(question: str) -> str\n\nquestion 0"}');
INSERT INTO "agent_messages" VALUES(2,1,1,'{"role":"assistant","content":null,"tool_calls":[{"id":"call-1","type":"function","function":{"name":"note","arguments":"{\"text\": \"likes tea\"}"}}]}');
INSERT INTO "agent_messages" VALUES(3,1,2,'{"role":"tool","tool_call_id":"call-1","content":"null"}');
INSERT INTO "agent_messages" VALUES(4,1,3,'{"role":"assistant","content":"Noted."}');
INSERT INTO "agent_messages" VALUES(5,1,4,'{"role":"user","content":"# ask(question: str) -> str\n\nquestion 2"}');
INSERT INTO "agent_messages" VALUES(6,1,5,'{"role":"assistant","content":"You like tea."}');
INSERT INTO "agent_messages" VALUES(7,2,0,'{"role":"user","content":"# ask(question: str) -> str\n\nquestion 0"}');
INSERT INTO "agent_messages" VALUES(8,2,1,'{"role":"assistant","content":"Half � a pair."}');
CREATE TABLE agents (
                key INTEGER PRIMARY KEY AUTOINCREMENT,
                id TEXT NOT NULL UNIQUE,
                class TEXT NOT NULL,
                version INTEGER NOT NULL
            );
INSERT INTO "agents" VALUES(1,'ann','Bot',2);
INSERT INTO "agents" VALUES(2,X'62EDA080','Bot',1);
CREATE TABLE effectful_agents (part TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "effectful_agents" VALUES('agents',1);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('agents',2);
INSERT INTO "sqlite_sequence" VALUES('agent_messages',8);
COMMIT;
